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

/** The quota and rate signals, and those of a limiter, as headers; see `usageLines`. */
export function usageHeaders(signals: UsageSignals, nowMs: number, limiter?: LimiterState): HeaderList {
  return headerList(usageLines(signals, nowMs, limiter))
}

/**
 * The only writer of the quota and rate signals (contract 5.5, 5.6), as lines of a response's head. Integers; resets are
 * Unix seconds. `limiter` is the limiter of an uncounted request: the `RateLimit` fields include it, and `X-RateLimit-*`
 * reports it once it is used up.
 */
export function usageLines(signals: UsageSignals, nowMs: number, limiter?: LimiterState): string {
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
  // One text instead of a list of twenty: every answer needs it.
  return `X-RateLimit-Limit: ${isUsedUp && limiter.unit === 'requests' ? limiter.limit : rateLimit}\r
X-RateLimit-Remaining: ${isUsedUp ? 0 : rateRemaining}\r
X-RateLimit-Reset: ${isUsedUp ? limiter.endsAt : rateReset}\r
X-Quota-Limit: ${quotaLimit}\r
X-Quota-Used: ${quotaUsed}\r
X-Quota-Remaining: ${quotaRemaining}\r
X-Quota-Period: month\r
X-Quota-Reset: ${quotaReset}\r
RateLimit-Policy: "minute";q=${rateLimit};w=${minuteMs / 1000}, "month";q=${quotaLimit}${policy}\r
RateLimit: "minute";r=${rateRemaining};t=${secondsTo(rateReset)}, "month";r=${quotaRemaining};t=${monthLeft}${state}\r
`
}

/** How the answer was produced, as headers; see `reliabilityLines`. */
export function reliabilityHeaders(produced: Omit<AnswerHead, 'signals' | 'stream'>): HeaderList {
  return headerList(reliabilityLines(produced))
}

/** How the answer was produced (contract 2.32-2.35, 42.11, 46.13), as lines of a response's head. */
export function reliabilityLines({
  upstream,
  model,
  retryCount,
  simulated,
  costUsd,
  maxOutputTokens,
}: Omit<AnswerHead, 'signals' | 'stream'>): string {
  let lines = `X-Svc-Router-Retry-Count: ${retryCount}\r\n`
  if (upstream !== undefined) lines += `X-Svc-Router-Upstream: ${inHeader(upstream)}\r\n`
  if (model !== undefined) lines += `X-Svc-Router-Model: ${inHeader(model).slice(0, longestModel)}\r\n`
  if (costUsd !== undefined) lines += `X-Svc-Router-Cost: ${costUsd}\r\n`
  if (maxOutputTokens !== undefined) lines += `X-Svc-Router-Max-Output-Tokens: ${maxOutputTokens}\r\n`
  if (simulated) lines += 'X-Svc-Router-Simulated: true\r\n'
  return lines
}

function inHeader(text: string): string {
  return text.replace(notInHeader, '?')
}

/** The lines of a response's head as a list. */
export function headerList(lines: string): HeaderList {
  const list: HeaderList = []
  for (const line of lines.split('\r\n')) {
    const colon = line.indexOf(': ')
    if (colon > 0) list.push(line.slice(0, colon), line.slice(colon + 2))
  }
  return list
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
