/** What is counted together. */
export const refusedHourMs = 3_600_000

/** How often requests were refused with one error, and the last of them. No text of a request is kept (contract 28.12). */
export interface RefusedCount {
  readonly accountId: string
  /** From the error catalog of the version that counted it. */
  readonly code: string
  readonly requests: number
  readonly lastRequestId: string
  /** The key of the last one, or `playgroundKeyId`. */
  readonly lastKeyId: string
  /** Epoch milliseconds. */
  readonly lastAtMs: number
}

/** The requests of one hour: a request that was never admitted has no record, only a place in this count. */
export interface RefusedHour extends RefusedCount {
  /** When the hour began, epoch milliseconds. */
  readonly hourMs: number
}

/** Of which account and which time refused requests are added up. */
export interface RefusedSelection {
  /** Absent for all accounts. */
  readonly accountId?: string
  /** Hours that begin in `[fromMs, untilMs)`. */
  readonly fromMs: number
  readonly untilMs: number
  readonly limit: number
}
