import type { Profile } from './profiles.ts'

/** Which records to replay, and how. */
export interface ReplayOptions {
  /** The profile with the other policy. */
  readonly policy: Profile
  /** Epoch milliseconds. */
  readonly sinceMs: number
  /** The maximum number of records: the latest. */
  readonly limit: number
  /** Whether backends are assumed to answer any number of open calls as fast as the recorded ones. */
  readonly assumesCapacity: boolean
}

/** Why a record is not replayed. */
export type LeftOutReason = 'unfinished' | 'fusion' | 'rejected' | 'canceled' | 'own_routing' | 'without_kind'

/**
 * Why the records do not show how a backend would have answered. `never`: it has no record for this kind of request.
 * `only_after_failures`: it was asked only after another backend failed. `not_then`: it was asked, but more than two
 * minutes before or after. `rarely`: the same few records would stand for many requests.
 */
export type UnseenReason = 'never' | 'only_after_failures' | 'not_then' | 'rarely'

/** Calls that a policy would have made and whose result the records do not show. */
export interface UnseenCalls {
  readonly backend: string
  readonly why: UnseenReason
  /** Requests with such a call, on average of all runs. */
  readonly requests: number
}

/** An estimate and its 95% interval. */
export interface Interval {
  readonly estimate: number
  readonly low: number
  readonly high: number
}

export type ReplayFigureName = 'cost_usd' | 'failed' | 'first_content_p50_ms' | 'first_content_p95_ms' | 'calls'

/** One figure, per request: what was recorded, what both policies give, and how they differ. Null: unknown. */
export interface ReplayFigure {
  readonly name: ReplayFigureName
  readonly recorded: number | null
  readonly configured: number | null
  readonly policy: number | null
  readonly change: Interval | null
}

/** The shares of the requests that a backend answered, from 0 to 1. */
export interface ReplayShares {
  readonly backend: string
  readonly recorded: number
  readonly configured: number
  readonly policy: number
}

/** A backend that would have more open calls than were ever recorded. */
export interface LoadWarning {
  readonly backend: string
  readonly openCalls: number
  readonly recordedOpenCalls: number
}

/** What a replay found (contract 33.12). Times are epoch milliseconds. */
export interface ReplayReport {
  readonly profile: string
  readonly records: number
  readonly requests: number
  readonly fromMs: number
  readonly untilMs: number
  readonly leftOut: Readonly<Partial<Record<LeftOutReason, number>>>
  /**
   * Whether the records show what would have changed. If not, `figures` and `shares` are empty. Single figures without
   * `change` are unknown, because of `loads` or `unpriced`.
   */
  readonly canTell: boolean
  /** Fewer requests than needed, or a shorter time; undefined if there are enough. */
  readonly tooLittle: { readonly leastRequests: number; readonly leastMs: number } | undefined
  /** The share of requests with a call whose result is unknown. */
  readonly unseenShare: number
  readonly unseen: readonly UnseenCalls[]
  readonly shares: readonly ReplayShares[]
  readonly figures: readonly ReplayFigure[]
  readonly loads: readonly LoadWarning[]
  /** Backends without a configured price, if the cost is unknown for that reason. */
  readonly unpriced: readonly string[]
  /** Whether the records were probably made under another policy than the configured one. */
  readonly recordedOtherwise: boolean
}
