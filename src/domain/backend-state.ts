import type { HoldKind } from './backend-controls.ts'
import type { AttemptOutcome } from './upstream.ts'

/** Why a backend's circuit breaker is open (contract 7.17, 8). */
export type OpenReason = 'credentials' | 'rate' | 'failing'

/** Why a backend is not asked: its breaker is open, or an operator keeps it out. */
export type SkipReason = OpenReason | HoldKind

/** A backend that a request did not ask, by a category that callers may read (contract 4.9). */
export interface SkippedBackend {
  readonly backend: string
  readonly reason: SkipReason
}

/** The state of a backend in one running process: of its circuit breaker, or the operator's hold that overrides it. */
export interface BackendState {
  readonly backendId: string
  /** `half_open`: one request at a time tries whether it is back. */
  readonly state: 'closed' | 'open' | 'half_open' | HoldKind
  /** Why it is not closed; undefined where it is. */
  readonly reason: OpenReason | HoldKind | undefined
  /** Since when it is down; undefined where it is closed. Epoch milliseconds. */
  readonly sinceMs: number | undefined
  /** When it is tried again; undefined where it is closed, or only an operator ends it. Epoch milliseconds. */
  readonly untilMs: number | undefined
  /** Whether it is asked and often fails. */
  readonly isTroubled: boolean
  /** Failures since the last complete answer. */
  readonly failures: number
  readonly lastFailure: { readonly outcome: AttemptOutcome; readonly atMs: number } | undefined
}

/** How often a backend answered within the last hour. */
export interface HourCount {
  readonly answered: number
  readonly failed: number
  /** Mean time of whole requests that it answered at the first attempt, milliseconds; undefined where there are none. */
  readonly meanMs: number | undefined
}
