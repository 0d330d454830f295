import type { Backend, ModelRequest } from '../ports.ts'

/** The longest time limit that a caller may set, milliseconds (contract 6.19). */
const longestTotalMs = 3_600_000
/**
 * Margin before a limit that the caller set, so that our error arrives before the client closes the connection: a
 * tenth of the limit, at most this (contract 6.19).
 */
const longestMarginMs = 1_000

/** A time limit in seconds, as errors name it: below a second in tenths, and never 0. */
export function shownSeconds(totalMs: number): number {
  return totalMs < 950 ? Math.max(1, Math.round(totalMs / 100)) / 10 : Math.round(totalMs / 1_000)
}

/** Time limit for the whole request: the caller's own, or the longest of its backends (contract 9.6). */
export function totalMsOf({ timeoutMs }: ModelRequest, backends: readonly Backend[]): number {
  if (timeoutMs === undefined) return Math.max(...backends.map(({ timeouts }) => timeouts.totalMs))
  const statedMs = Math.min(longestTotalMs, timeoutMs)
  return statedMs - Math.min(longestMarginMs, statedMs / 10)
}
