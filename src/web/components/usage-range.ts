import { html } from 'hono/html'
import { periodAt } from '../../domain/account-meter.ts'
import { dayMs } from '../../runtime/durations.ts'
import type { Html } from './html.ts'
import { writeNumber } from './time.ts'
import { sumOf } from './usage-sums.ts'

export const recentDays = 30
/** At most this many requests are summed per day; pages say when there were more. */
export const maxPerDay = 50_000

/** The days whose requests a page adds up: whole days in UTC. */
export interface UsageRange {
  readonly range: 'month' | '30d'
  readonly fromMs: number
  readonly untilMs: number
}

/** The days that a page was asked for with `range`: this month, or else the last 30 days. */
export function usageRange(range: string | null, nowMs: number): UsageRange {
  const untilMs = (Math.floor(nowMs / dayMs) + 1) * dayMs
  return range === 'month'
    ? { range, fromMs: periodAt(nowMs).startMs, untilMs }
    : { range: '30d', fromMs: untilMs - recentDays * dayMs, untilMs }
}

/** Links to both ranges, with the current one marked. */
export function rangeLinks(current: UsageRange['range'], hrefOf: (range: UsageRange['range']) => string): Html {
  const link = (value: UsageRange['range'], text: string): Html =>
    html`<a href="${hrefOf(value)}" ${value === current ? html`aria-current="true"` : ''}>${text}</a>`
  return html`<p class="ranges">${link('30d', 'Last 30 days')} ${link('month', 'This month')}</p>`
}

/** Whether there were more requests on a day than are summed. */
export function isPartial(groups: readonly { readonly day: string; readonly requests: number }[]): boolean {
  const days = Map.groupBy(groups, ({ day }) => day)
  return [...days.values()].some((its) => sumOf(its, ({ requests }) => requests) >= maxPerDay)
}

export function partialNote(): Html {
  return html`<p class="warning">
    On the busiest days, the sums on this page include only the latest ${writeNumber(maxPerDay)} requests of the day.
  </p>`
}
