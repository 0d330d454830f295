import { dayMs, hourMs } from '../runtime/durations.ts'
import { minuteMs } from '../runtime/minute-log.ts'
import { periodAt } from './account-meter.ts'
import type { BudgetKind, BudgetStanding, BudgetWindow } from './budgets.ts'

/** The length of a sliding window, and of the buckets that it is counted in. A sliding month has 30 days. */
export const rollingWindows: Readonly<Record<BudgetWindow, { readonly lengthMs: number; readonly bucketMs: number }>> =
  {
    '5h': { lengthMs: 5 * hourMs, bucketMs: 5 * minuteMs },
    day: { lengthMs: dayMs, bucketMs: hourMs },
    week: { lengthMs: 7 * dayMs, bucketMs: hourMs },
    month: { lengthMs: 30 * dayMs, bucketMs: 6 * hourMs },
  }

/** Longer than any window with its oldest bucket. */
export const longestWindowMs = 32 * dayMs

/** Epoch milliseconds: the bucket that is charged at a time, and the oldest one that counts. */
export interface BucketRange {
  readonly currentMs: number
  readonly firstMs: number
}

/**
 * A fixed window has one bucket. A sliding window counts whole buckets, including the one that it has begun to leave: what
 * was spent is counted for at least the length of the window.
 */
export function bucketsAt({ window, rolling }: Pick<BudgetKind, 'window' | 'rolling'>, nowMs: number): BucketRange {
  if (!rolling) {
    const startMs = fixedStart(window, nowMs)
    return { currentMs: startMs, firstMs: startMs }
  }
  const { lengthMs, bucketMs } = rollingWindows[window]
  return { currentMs: floorTo(nowMs, bucketMs), firstMs: floorTo(nowMs - lengthMs, bucketMs) }
}

/** When a fixed window ends, or when a sliding one first leaves something behind. Epoch milliseconds. */
export function resetsAtMs(
  { window, rolling }: Pick<BudgetKind, 'window' | 'rolling'>,
  { oldestMs }: Pick<BudgetStanding, 'oldestMs'>,
  nowMs: number,
): number {
  if (!rolling) return fixedEnd(window, nowMs)
  const { lengthMs, bucketMs } = rollingWindows[window]
  return (oldestMs ?? floorTo(nowMs, bucketMs)) + lengthMs + bucketMs
}

/** Names the window for which an alert is sent once: the fixed one, or one of the same length. */
export function alertWindowMs({ window, rolling }: Pick<BudgetKind, 'window' | 'rolling'>, nowMs: number): number {
  return rolling ? floorTo(nowMs, rollingWindows[window].lengthMs) : fixedStart(window, nowMs)
}

/** Weeks begin on Monday; five-hour windows are counted from the beginning of 1970. All in UTC. */
function fixedStart(window: BudgetWindow, nowMs: number): number {
  switch (window) {
    case '5h':
      return floorTo(nowMs, 5 * hourMs)
    case 'day':
      return floorTo(nowMs, dayMs)
    case 'week':
      // 1970 began on a Thursday.
      return floorTo(nowMs + 3 * dayMs, 7 * dayMs) - 3 * dayMs
    case 'month':
      return periodAt(nowMs).startMs
  }
}

function fixedEnd(window: BudgetWindow, nowMs: number): number {
  if (window === 'month') return periodAt(nowMs).endMs
  return fixedStart(window, nowMs) + rollingWindows[window].lengthMs
}

function floorTo(ms: number, stepMs: number): number {
  return Math.floor(ms / stepMs) * stepMs
}
