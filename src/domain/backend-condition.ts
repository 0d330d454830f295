import type { HoldKind } from './backend-controls.ts'
import type { AttemptOutcome } from './upstream.ts'

/** Why a backend is left alone for a while by the service itself (contract 5.2, 5.4). */
export type CoolingReason = 'credentials' | 'rate' | 'failing'

/** How a backend stands in one running process. */
export interface BackendCondition {
  readonly backendId: string
  readonly state: 'usable' | 'cooling' | HoldKind
  /** Why it is not usable; undefined where it is. */
  readonly reason: CoolingReason | HoldKind | undefined
  /** Since when it stands so; undefined where it is usable. */
  readonly sinceMs: number | undefined
  /** When it is asked again by itself; undefined where it is usable, or only an operator ends it. */
  readonly untilMs: number | undefined
  /** Failures in a row up to now. */
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
