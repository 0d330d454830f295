import { minuteMs } from '../runtime/minute-log.ts'

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** When a month or the window of a budget ends, such as `Dec 1 at 00:00 UTC`, rounded up to a minute. */
export function writeReset(timeMs: number): string {
  const at = new Date(Math.ceil(timeMs / minuteMs) * minuteMs)
  return `${months[at.getUTCMonth()]} ${at.getUTCDate()} at ${at.toISOString().slice(11, 16)} UTC`
}
