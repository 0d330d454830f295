import { html } from 'hono/html'
import { dayMs, hourMs } from '../../runtime/durations.ts'
import type { Html } from './html.ts'

const day = new Intl.DateTimeFormat('en-US', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' })
const minute = new Intl.DateTimeFormat('en-US', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
  timeZone: 'UTC',
})
const number = new Intl.NumberFormat('en-US')
const units = [
  { ms: dayMs, name: 'day' },
  { ms: hourMs, name: 'hour' },
  { ms: 60_000, name: 'minute' },
] as const
/** Older times are shown as a date. */
const longestAgoMs = 14 * dayMs

/** `Nov 21, 2026`, in UTC. */
export function writeDay(timeMs: number): Html {
  return html`<time datetime="${new Date(timeMs).toISOString()}">${day.format(timeMs)}</time>`
}

/** `Nov 21, 14:05 UTC`. */
export function writeMinute(timeMs: number): Html {
  return html`<time datetime="${new Date(timeMs).toISOString()}">${minute.format(timeMs)} UTC</time>`
}

/** `3 hours ago`; the date if it is more than two weeks ago. */
export function writeAgo(timeMs: number, nowMs: number): Html {
  const agoMs = Math.max(0, nowMs - timeMs)
  if (agoMs > longestAgoMs) return writeDay(timeMs)
  const unit = units.find(({ ms }) => agoMs >= ms)
  const count = unit === undefined ? 0 : Math.floor(agoMs / unit.ms)
  const text = unit === undefined ? 'just now' : `${count} ${unit.name}${count === 1 ? '' : 's'} ago`
  return html`<time datetime="${new Date(timeMs).toISOString()}">${text}</time>`
}

/** `12,345`. */
export function writeNumber(value: number): string {
  return number.format(value)
}

/** A count with its noun, such as `1 request` or `20,000 requests`. */
export function writeCount(value: number, noun: string): string {
  return `${writeNumber(value)} ${noun}${value === 1 ? '' : 's'}`
}
