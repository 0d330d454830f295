import { expect } from 'vitest'
import type { Links } from '../src/domain/links.ts'
import type { Answer } from './wire.ts'

export interface RefusalBody {
  readonly message: string
  readonly type: string
  readonly code: string
  readonly param: string | null
  readonly source: string
  readonly retryable: boolean
  readonly request_id: string
  readonly [name: string]: unknown
}

/** The expected properties of an error answer (contract 4). */
export interface ExpectedRefusal {
  readonly status: number
  readonly type: string
  readonly code: string
  readonly source: 'client' | 'gateway' | 'provider' | 'edge'
  readonly retryable: boolean
  readonly param?: string | null
  /** The end of the message, and its only link. */
  readonly link?: string
  /** The seconds of `Retry-After`, or their minimum and maximum; absent if the header must be absent. */
  readonly retryAfter?: number | readonly [number, number]
  readonly signals?: 'authentication' | 'billing'
  /** Whether the account is known, so that the answer has its counters. */
  readonly usage: boolean
  /** Whether it answers a request below /v1/. */
  readonly model?: boolean
  /** The error shape. Default: that of the OpenAI-compatible API. */
  readonly shape?: 'messages'
  /** The error code of Anthropic's SDK, if it differs from ours. */
  readonly errorCode?: string
}

/** The signal headers of contract 5.5 and 5.6, in every answer to a known account. */
export const usageHeaderNames = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-quota-limit',
  'x-quota-used',
  'x-quota-remaining',
  'x-quota-period',
  'x-quota-reset',
  'ratelimit',
  'ratelimit-policy',
] as const

/** The error in the body of an answer. */
export function errorOf({ text }: Pick<Answer, 'text'>): RefusalBody {
  return (JSON.parse(text) as { error: RefusalBody }).error
}

/** Asserts everything that an error answer must and must not contain (contract 4). */
export function expectRefusal(answer: Answer, expected: ExpectedRefusal, links: Links): void {
  const { headers, status } = answer
  expect(status, answer.text).toBe(expected.status)
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  const error = errorOf(answer)
  const { type, code, source, retryable, param = null } = expected
  expect(error).toMatchObject({ type, code, source, retryable, param })
  expect(Object.keys(error).slice(0, 7)).toEqual([
    'message',
    'type',
    'param',
    'code',
    'source',
    'retryable',
    'request_id',
  ])
  expectShape(answer, error, expected)
  expectMessage(error.message, expected.link)
  expect(error.request_id).toMatch(/^req_[0-9A-Za-z]{24}$/)
  expect(headers.get('x-request-id')).toBe(error.request_id)
  expect(headers.get('x-should-retry')).toBe(String(retryable))
  expectRetryAfter(answer, error.message, expected.retryAfter)
  expectSignalFields(error, expected, links)
  expect(headers.get('www-authenticate')).toBe(challengeOf(expected))
  if (expected.usage) expectUsage(headers)
  else for (const name of usageHeaderNames) expect(headers.has(name), name).toBe(false)
  if (expected.model !== false) expect(headers.get('x-svc-router-retry-count')).toMatch(/^[0-2]$/)
}

/** Asserts the envelope of one error shape, without parts of the other. */
function expectShape(
  { headers, text }: Answer,
  error: RefusalBody,
  { shape, code, errorCode = code }: ExpectedRefusal,
): void {
  const { error: _, ...around } = JSON.parse(text) as Record<string, unknown>
  if (shape === undefined) {
    expect(around).toEqual({})
    expect(headers.has('request-id')).toBe(false)
    expect(error['details']).toBeUndefined()
    return
  }
  expect(around).toEqual({ type: 'error', request_id: error.request_id, message: error.message })
  expect(headers.get('request-id')).toBe(error.request_id)
  expect(error['details']).toEqual({ error_code: errorCode })
}

function expectMessage(message: string, link: string | undefined): void {
  expect(message.length).toBeLessThanOrEqual(240)
  expect(message).not.toMatch(/[{}\n]|undefined|\[object/)
  const found = message.match(/https?:\/\/\S+/g) ?? []
  expect(found).toEqual(link === undefined ? [] : [link])
  if (link !== undefined) expect(message.endsWith(` ${link}`), message).toBe(true)
}

function expectRetryAfter({ headers }: Answer, message: string, expected: ExpectedRefusal['retryAfter']): void {
  const value = headers.get('retry-after')
  if (expected === undefined) {
    expect(value).toBeNull()
    return
  }
  const [least, most] = typeof expected === 'number' ? [expected, expected] : expected
  expect(value).toMatch(/^\d{1,2}$/)
  expect(Number(value)).toBeGreaterThanOrEqual(least)
  expect(Number(value)).toBeLessThanOrEqual(most)
  expect(message.toLowerCase().endsWith(`please try again in ${value}s.`), message).toBe(true)
}

function expectSignalFields(error: RefusalBody, { signals, link }: ExpectedRefusal, links: Links): void {
  const { upgradeUrl, billingUrl, supportUrl, accountUrl, accountSetupUrl, managedAccessUrl, keyRecoveryUrl } = links
  const billing = { upgradeUrl, billingUrl, supportUrl }
  const authentication = {
    apiKeyPrefix: 'sk_svc_',
    accountUrl,
    accountSetupUrl,
    primaryActionUrl: link,
    managedAccessUrl,
    keyRecoveryUrl,
  }
  const wanted = signals === 'billing' ? billing : signals === 'authentication' ? authentication : {}
  const names = Object.keys({ ...billing, ...authentication })
  expect(Object.fromEntries(Object.entries(error).filter(([name]) => names.includes(name)))).toEqual(wanted)
}

function challengeOf({ code, signals }: ExpectedRefusal): string | null {
  if (signals !== 'authentication') return null
  return code === 'key_missing' ? 'Bearer realm="svc-router"' : 'Bearer realm="svc-router", error="invalid_token"'
}

/** Asserts the counters of contract 5.5 and 5.6, and returns them as numbers. */
export function expectUsage(headers: Headers): Record<(typeof usageHeaderNames)[number], number> {
  const values = Object.fromEntries(usageHeaderNames.map((name) => [name, headers.get(name)]))
  for (const name of usageHeaderNames.slice(0, 8)) {
    if (name !== 'x-quota-period') expect(values[name], name).toMatch(/^\d+$/)
  }
  expect(values['x-quota-period']).toBe('month')
  const numbers = Object.fromEntries(usageHeaderNames.map((name) => [name, Number(values[name])]))
  expect(numbers['x-quota-used']! + numbers['x-quota-remaining']!).toBe(numbers['x-quota-limit'])
  expect(numbers['x-ratelimit-remaining']).toBeLessThanOrEqual(numbers['x-ratelimit-limit']!)
  return numbers as Record<(typeof usageHeaderNames)[number], number>
}
