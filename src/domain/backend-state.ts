import type { HoldKind } from './backend-controls.ts'
import type { AttemptOutcome } from './upstream.ts'

/** Why a backend's circuit breaker is open (contract 7.17, 8). */
export type OpenReason = 'credentials' | 'rate' | 'failing' | 'slow'

/** Why a backend is not asked: its circuit breaker is open, or an operator took it out of use. */
export type SkipReason = OpenReason | HoldKind

/** A backend that a request skipped, with a reason that clients may see (contract 4.9). */
export interface SkippedBackend {
  readonly backend: string
  readonly reason: SkipReason
}

/** The state of a backend: of its circuit breaker, or an operator's hold, which overrides it. */
export interface BackendState {
  readonly backendId: string
  /** `half_open`: one request at a time tests whether the backend recovered. */
  readonly state: 'closed' | 'open' | 'half_open' | HoldKind
  /** Why it is not closed; undefined if it is. */
  readonly reason: OpenReason | HoldKind | undefined
  /** Since when it is not closed, or skipped by some nodes, epoch milliseconds. */
  readonly sinceMs: number | undefined
  /** When it is tried again, epoch milliseconds; undefined if it is closed or only an operator can release it. */
  readonly untilMs: number | undefined
  /** Whether it is in use and often fails. */
  readonly isTroubled: boolean
  /** Failures since the last complete answer. */
  readonly failures: number
  readonly lastFailure: { readonly outcome: AttemptOutcome; readonly atMs: number } | undefined
  /** If only some nodes skip it: how many, of those that use it. Undefined for the state in one process. */
  readonly skippedBy?: { readonly nodes: number; readonly of: number } | undefined
}

/** A backend's results in the last hour. */
export interface HourCount {
  readonly answered: number
  readonly failed: number
  /** Complete answers at the first attempt, and the sum of their durations in milliseconds. */
  readonly timed: number
  readonly sumMs: number
}
