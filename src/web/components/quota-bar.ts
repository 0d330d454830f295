import { html } from 'hono/html'
import type { UsageSignals } from '../../domain/account-meter.ts'
import { dayMs } from '../../runtime/durations.ts'
import type { Html } from './html.ts'
import { writeDay, writeNumber } from './time.ts'

/** The bar shows a warning from this share on. */
const nearlyFull = 0.9

/** The enforced monthly and per-minute usage (contract 5.13), as a bar and in words. */
export function quotaBar(usage: UsageSignals, nowMs: number): Html {
  const { quotaLimit, quotaUsed, quotaRemaining, quotaReset, rateLimit, rateRemaining } = usage
  const share = quotaLimit === 0 ? 1 : Math.min(1, quotaUsed / quotaLimit)
  const days = Math.max(1, Math.ceil((quotaReset * 1000 - nowMs) / dayMs))
  const text = `${writeNumber(quotaUsed)} of ${writeNumber(quotaLimit)} requests used`
  const minute = `Of the ${writeNumber(rateLimit)} requests allowed in any 60 seconds, ${writeNumber(rateRemaining)} are left.`
  return html`<p><strong>${writeNumber(quotaUsed)}</strong> of ${writeNumber(quotaLimit)} requests this month</p>
    <svg
      class="bar ${share >= nearlyFull ? 'full' : ''}"
      viewBox="0 0 100 4"
      preserveAspectRatio="none"
      role="img"
      aria-label="${text}"
    >
      <rect class="used" width="${(share * 100).toFixed(2)}" height="4" />
    </svg>
    <p class="faint">
      ${writeNumber(quotaRemaining)} left. The quota resets on ${writeDay(quotaReset * 1000)} (in ${days}
      day${days === 1 ? '' : 's'}). ${minute}
    </p>`
}
