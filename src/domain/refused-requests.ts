/** The interval of one count. */
export const refusedHourMs = 3_600_000

/**
 * How often requests were rejected with one error, and details of the last one. No text of a request is stored
 * (contract 28.12).
 */
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

/** The rejections of one hour. A request that was never admitted has no record and is only counted here. */
export interface RefusedHour extends RefusedCount {
  /** The start of the hour, epoch milliseconds. */
  readonly hourMs: number
}

/** Which rejected requests to count. */
export interface RefusedSelection {
  /** Absent for all accounts. */
  readonly accountId?: string
  /** Hours that begin in `[fromMs, untilMs)`. */
  readonly fromMs: number
  readonly untilMs: number
  readonly limit: number
}
