import { dayMs } from '../../runtime/durations.ts'

/** The same day of the next month, or that month's last day. */
export function nextMonth(timeMs: number): number {
  const from = new Date(timeMs)
  const lastDay = new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 2, 0)).getUTCDate()
  const day = Math.min(from.getUTCDate(), lastDay)
  return Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1, day) + (timeMs % dayMs)
}
