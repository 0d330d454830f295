import type { UsageSignals } from '../domain/account-meter.ts'
import type { AnswerHead } from '../gateway/ports.ts'
import type { BackendCount } from '../gateway/routing/count-backends.ts'
import { minuteMs } from '../runtime/minute-log.ts'
import type { LimiterState } from './attempt-limiter.ts'

/** Characters that a header cannot contain: a model's name is free text of the operator or an account. */
const notInHeader = /[^\x20-\x7e]/g
const longestModel = 200

/** Header names and values, alternating: the form that Node writes fastest. */
export type HeaderList = string[]

/**
 * The only writer of the quota and rate signals (contract 5.5, 5.6). Integers; resets are Unix seconds. `limiter` is
 * the limiter of an uncounted request: the `RateLimit` fields include it, and `X-RateLimit-*` reports it once it is
 * used up.
 */
export function usageHeaders(signals: UsageSignals, nowMs: number, limiter?: LimiterState): HeaderList {
  const { rateLimit, rateRemaining, rateReset, quotaLimit, quotaUsed, quotaRemaining, quotaReset } = signals
  const now = Math.floor(nowMs / 1000)
  const isUsedUp = limiter?.remaining === 0
  // Both ends are rounded to seconds: without the bound a full minute would show as 61.
  const secondsTo = (time: number): number => Math.min(minuteMs / 1000, Math.max(0, time - now))
  const monthLeft = Math.max(0, quotaReset - now)
  let policy = ''
  let state = ''
  if (limiter !== undefined) {
    const unit = limiter.unit === 'requests' ? '' : `;qu="${limiter.unit}"`
    policy = `, "${limiter.name}";q=${limiter.limit}${unit};w=${minuteMs / 1000}`
    state = `, "${limiter.name}";r=${limiter.remaining};t=${secondsTo(limiter.endsAt)}`
  }
  return [
    'X-RateLimit-Limit',
    String(isUsedUp && limiter.unit === 'requests' ? limiter.limit : rateLimit),
    'X-RateLimit-Remaining',
    String(isUsedUp ? 0 : rateRemaining),
    'X-RateLimit-Reset',
    String(isUsedUp ? limiter.endsAt : rateReset),
    'X-Quota-Limit',
    String(quotaLimit),
    'X-Quota-Used',
    String(quotaUsed),
    'X-Quota-Remaining',
    String(quotaRemaining),
    'X-Quota-Period',
    'month',
    'X-Quota-Reset',
    String(quotaReset),
    'RateLimit-Policy',
    `"minute";q=${rateLimit};w=${minuteMs / 1000}, "month";q=${quotaLimit}${policy}`,
    'RateLimit',
    `"minute";r=${rateRemaining};t=${secondsTo(rateReset)}, "month";r=${quotaRemaining};t=${monthLeft}${state}`,
  ]
}

/** How the answer was produced (contract 2.32-2.35, 42.11, 46.13). */
export function reliabilityHeaders({
  upstream,
  model,
  retryCount,
  simulated,
  costUsd,
  maxOutputTokens,
}: Omit<AnswerHead, 'signals' | 'stream'>): HeaderList {
  const count = String(retryCount)
  const headers =
    upstream === undefined
      ? ['X-Svc-Router-Retry-Count', count]
      : ['X-Svc-Router-Retry-Count', count, 'X-Svc-Router-Upstream', upstream]
  if (model !== undefined) headers.push('X-Svc-Router-Model', model.replace(notInHeader, '?').slice(0, longestModel))
  if (costUsd !== undefined) headers.push('X-Svc-Router-Cost', costUsd)
  if (maxOutputTokens !== undefined) headers.push('X-Svc-Router-Max-Output-Tokens', String(maxOutputTokens))
  if (simulated) headers.push('X-Svc-Router-Simulated', 'true')
  return headers
}

/**
 * The backends of each profile as a structured list (RFC 9651): one item per profile, with counts as parameters
 * (contract 17.4).
 */
export function backendsHeader(counts: readonly BackendCount[]): HeaderList {
  const items = counts.map(({ profile, ...numbers }) =>
    [`"${profile}"`, ...Object.entries(numbers).map(([name, count]) => `${name}=${count}`)].join(';'),
  )
  return ['X-Svc-Router-Backends', items.join(', ')]
}

/** Headers as an object with lowercase names, for messages that have no headers of their own. */
export function headersObject(headers: HeaderList): Record<string, string> {
  const object: Record<string, string> = {}
  for (let at = 0; at + 1 < headers.length; at += 2) object[headers[at]!.toLowerCase()] = headers[at + 1]!
  return object
}
