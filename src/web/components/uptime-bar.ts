import { html } from 'hono/html'
import { shareOver, type StatusDay } from '../../domain/service-status.ts'
import type { Html } from './html.ts'
import { writeCount } from './time.ts'

const tones = ['no', 'good', 'warn', 'bad'] as const
/** Days below these shares of answered requests are shown as degraded or as bad. */
const troubleBelow = 0.995
const badBelow = 0.95

/** One bar per day with the share of answered requests, with a text alternative. */
export function uptimeBar(name: string, days: readonly StatusDay[]): Html {
  const worst = days.filter(({ share }) => share !== undefined && share < troubleBelow)
  const share = shareOver(days)
  const result =
    share === undefined
      ? 'no counted requests'
      : `${writeShare(share)} answered, ${writeCount(worst.length, 'day')} with less than ${writeShare(troubleBelow)}`
  const words = `${name}, the last ${writeCount(days.length, 'day')}: ${result}`
  return html`<svg
    class="days"
    viewBox="0 0 ${days.length} 10"
    preserveAspectRatio="none"
    role="img"
    aria-label="${words}"
  >
    ${tones.map((tone) => html`<path class="${tone}" d="${stripes(days, tone)}" />`)}
  </svg>`
}

/** An SVG path with one line per run of days with the same tone; CSS dashes divide it into days. */
function stripes(days: readonly StatusDay[], tone: (typeof tones)[number]): string {
  let path = ''
  for (let from = 0; from < days.length;) {
    let to = from
    while (to < days.length && toneOf(days[to]?.share) === tone) to += 1
    if (to > from) path += `M${from} 5h${to - from}`
    from = Math.max(to, from + 1)
  }
  return path
}

/** `99.98%`; rounded down, so that no failure is rounded away. */
export function writeShare(share: number | undefined): string {
  return share === undefined ? 'no counted requests' : `${Math.floor(share * 10_000) / 100}%`
}

function toneOf(share: number | undefined): (typeof tones)[number] {
  if (share === undefined) return 'no'
  if (share < badBelow) return 'bad'
  return share < troubleBelow ? 'warn' : 'good'
}
