import { randomBytes } from 'node:crypto'
import Anthropic, {
  APIError,
  AuthenticationError,
  BadRequestError,
  NotFoundError,
  PaymentRequiredError,
  PermissionDeniedError,
  RateLimitError,
} from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mintKey } from '../../src/domain/keys.ts'
import { linksFor } from '../../src/domain/links.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { Service } from '../service.ts'
import { connectAnthropic } from './anthropic-clients.ts'
import type { Traffic } from './counting-fetch.ts'
import { withoutSleeping } from './without-sleeping.ts'

const model = 'svc-router/frontier'
const longestMessage = 240
const request = { model, max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hello' }] }

const plans = {
  max: { name: 'Max', requests_per_minute: 600, requests_per_month: 100_000, premium: true },
  free: { name: 'Free', requests_per_minute: 100, requests_per_month: 500 },
  tiny: { name: 'Tiny', requests_per_minute: 100, requests_per_month: 1 },
  slow: { name: 'Slow', requests_per_minute: 1, requests_per_month: 500 },
}

const clock = new SkippingClock()
let service: Service
let links: ReturnType<typeof linksFor>
beforeAll(async () => {
  service = await Service.start({ formats: ['anthropic-messages'], settings: { plans }, clock })
  links = linksFor(service.config.appUrl)
})
afterAll(() => service.stop())

/** The calls with which every rejection is provoked: the message must not depend on them. */
const calls = [
  { api: 'create', send: (client: Anthropic): Promise<unknown> => client.messages.create(request) },
  {
    api: 'create with stream',
    send: (client: Anthropic): Promise<unknown> => client.messages.create({ ...request, stream: true }),
  },
  { api: '.stream()', send: (client: Anthropic): Promise<unknown> => client.messages.stream(request).finalMessage() },
] as const

describe.each(calls)('$api', ({ send }) => {
  test.each([
    ['no key', { apiKey: null, defaultHeaders: { authorization: null } }, 'key_missing', 'accountSetupUrl'],
    ['an Anthropic key', { apiKey: 'sk-ant-api03-madeup' }, 'key_malformed', 'accountUrl'],
    ['a mistyped token', { authToken: 'sk_svc_mistyped' }, 'key_malformed', 'accountUrl'],
    [
      'a well-formed key that does not exist',
      { apiKey: mintKey(systemRandom()).reveal() },
      'key_inactive',
      'accountUrl',
    ],
  ] as const)('%s gets a 401 after one request', async (_, options, code, link) => {
    const { client, traffic } = connectAnthropic(service, options)
    const error = await rejectionOf(() => send(client), traffic)
    expect(error).toBeInstanceOf(AuthenticationError)
    expect(error).toMatchObject({ status: 401, errorCode: code, type: 'authentication_error' })
    expect(error.message.endsWith(links[link])).toBe(true)
    expect(error.headers!.get('x-should-retry')).toBe('false')
    expect(traffic.sent).toHaveLength(1)
  })

  test('a revoked key gets a 401 that says so, with every link, after one request', async () => {
    const { key, stored } = await service.addAccount(`revoked-${randomBytes(4).toString('hex')}`, 'free')
    await service.revoke(stored.id)
    const { client, traffic } = connectAnthropic(service, { authToken: key })
    const error = await rejectionOf(() => send(client), traffic)
    expect(error).toMatchObject({ status: 401, errorCode: 'key_revoked', type: 'authentication_error' })
    expect(error.message).toContain('was revoked')
    expect(bodyOf(error)).toMatchObject({
      apiKeyPrefix: 'sk_svc_',
      primaryActionUrl: links.accountUrl,
      keyRecoveryUrl: links.keyRecoveryUrl,
      source: 'client',
      retryable: false,
    })
    expect(traffic.sent).toHaveLength(1)
  })

  test('an exhausted month gets a 402 with the upgrade link, after one request and without Retry-After', async () => {
    const { key } = await service.addAccount(`tiny-${randomBytes(4).toString('hex')}`, 'tiny')
    const { client, traffic } = connectAnthropic(service, { apiKey: key })
    await client.messages.create(request)
    const error = await rejectionOf(() => send(client), traffic)
    expect(error).toBeInstanceOf(PaymentRequiredError)
    expect(error).toMatchObject({ status: 402, errorCode: 'insufficient_quota', type: 'billing_error' })
    expect(error.message).toContain('1 of 1')
    expect(error.message.endsWith(links.upgradeUrl)).toBe(true)
    expect(bodyOf(error)).toMatchObject({ upgradeUrl: links.upgradeUrl, supportUrl: links.supportUrl })
    expect(error.headers!.has('retry-after')).toBe(false)
    expect(error.headers!.get('x-quota-remaining')).toBe('0')
    expect(traffic.sent).toHaveLength(2)
  })

  test('the premium profile on a free plan gets a 403 with the upgrade link, after one request that reaches no provider', async () => {
    const { key } = await service.addAccount(`free-${randomBytes(4).toString('hex')}`, 'free')
    const { client, traffic } = connectAnthropic(service, { apiKey: key })
    const before = service.providers[0]!.counts().requests
    const error = await rejectionOf(() => client.messages.create({ ...request, model: 'svc-router/fusion' }), traffic)
    expect(error).toBeInstanceOf(PermissionDeniedError)
    expect(error).toMatchObject({ status: 403, errorCode: 'plan_required', type: 'permission_error' })
    expect(error.message.endsWith(links.upgradeUrl)).toBe(true)
    expect(traffic.sent).toHaveLength(1)
    expect(service.providers[0]!.counts().requests).toBe(before)
  })

  test('an exhausted minute gets a 429, and the SDK waits exactly as long as the error says', async () => {
    const { key } = await service.addAccount(`slow-${randomBytes(4).toString('hex')}`, 'slow')
    const { client, traffic } = connectAnthropic(service, { apiKey: key })
    await client.messages.create(request)
    const slept = await withoutSleeping(/@anthropic-ai\/sdk\/.*sleep\./, async () => {
      const error = await rejectionOf(() => send(client), traffic)
      expect(error).toBeInstanceOf(RateLimitError)
      expect(error).toMatchObject({ status: 429, errorCode: 'rate_limit_exceeded', type: 'rate_limit_error' })
      const seconds = Number(error.headers!.get('retry-after'))
      expect(seconds).toBeGreaterThanOrEqual(1)
      expect(seconds).toBeLessThanOrEqual(60)
      expect(error.message.endsWith(`Please try again in ${seconds}s.`)).toBe(true)
    })
    // One answered, one rejected, and its two retries.
    expect(traffic.sent).toHaveLength(4)
    const advised = traffic.answers.slice(1, 3).map(({ headers }) => Number(headers.get('retry-after')) * 1000)
    expect(slept).toEqual(advised)
  })

  test('if no backend answers, the error is a 503 overloaded_error, and the SDK’s own retry succeeds after recovery', async () => {
    const down = { do: 'status', status: 503 } as const
    const impatient = connectAnthropic(service, { maxRetries: 0 })
    service.providers[0]!.script([down])
    const error = await rejectionOf(() => send(impatient.client), impatient.traffic)
    expect(error).toMatchObject({ status: 503, errorCode: 'server_is_overloaded', type: 'overloaded_error' })
    expect(error.headers!.get('x-should-retry')).toBe('true')
    const { client, traffic } = connectAnthropic(service, { maxRetries: 1 })
    service.providers[0]!.script([down])
    await send(client)
    expect(traffic.answers.map(({ status }) => status)).toEqual([503, 200])
  })
})

describe('other rejections', () => {
  test('a mistyped profile gets a 404 that suggests the right one, after one request', async () => {
    const { client, traffic } = connectAnthropic(service)
    const error = await rejectionOf(() => client.messages.create({ ...request, model: 'svc-router/fronteir' }), traffic)
    expect(error).toBeInstanceOf(NotFoundError)
    expect(error).toMatchObject({ status: 404, errorCode: 'model_not_found', type: 'not_found_error' })
    expect(error.message).toContain('Did you mean "svc-router/frontier"?')
    expect(traffic.sent).toHaveLength(1)
  })

  test('an invalid body gets a 400 that names the field', async () => {
    const { client, traffic } = connectAnthropic(service)
    const messages = 'Hello' as unknown as Anthropic.MessageParam[]
    const error = await rejectionOf(() => client.messages.create({ ...request, messages }), traffic)
    expect(error).toBeInstanceOf(BadRequestError)
    expect(error).toMatchObject({ status: 400, errorCode: 'invalid_request', type: 'invalid_request_error' })
    expect(bodyOf(error)).toMatchObject({ param: 'messages' })
    expect(traffic.sent).toHaveLength(1)
  })

  test('a key and a token that differ get a 400 that names both headers', async () => {
    const { client, traffic } = connectAnthropic(service, {
      apiKey: null,
      defaultHeaders: { 'x-api-key': 'sk-ant-api03-madeup', authorization: `Bearer ${service.key}` },
    })
    const error = await rejectionOf(() => client.messages.create(request), traffic)
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error' })
    expect(error.message).toContain('Two different keys were sent, in authorization and in x-api-key.')
  })

  test('a base URL that already ends in /v1 gets a 404 with the right one', async () => {
    const client = new Anthropic({ baseURL: service.baseUrl, apiKey: service.key })
    const error: unknown = await client.messages.create(request).catch((reason: unknown) => reason)
    if (!(error instanceof NotFoundError)) throw new Error('not rejected', { cause: error })
    expect(error).toMatchObject({ errorCode: 'not_found', type: 'not_found_error' })
    expect(error.message.endsWith(`The base URL of the API is ${service.origin}`)).toBe(true)
  })

  test('an unsupported Anthropic endpoint gets a 404 in Anthropic’s shape, and in OpenAI’s shape for other clients', async () => {
    const { client, traffic } = connectAnthropic(service)
    const error = await rejectionOf(() => client.messages.batches.list(), traffic)
    expect(error).toMatchObject({ status: 404, errorCode: 'not_found', type: 'not_found_error' })
    const other = await service.post('/v1/chat/completions', {})
    expect(await other.json()).toMatchObject({
      error: { type: 'invalid_request_error', message: expect.stringContaining(service.baseUrl) as string },
    })
  })
})

describe('countTokens', () => {
  test('it returns about the size of a request, marked as an estimate, and charges nothing', async () => {
    const { client } = connectAnthropic(service)
    const before = (await service.post('/messages', request)).headers
    const short = await client.messages.countTokens({ model, messages: request.messages }).withResponse()
    const long = await client.messages.countTokens({
      model,
      system: 'Be kind. '.repeat(400),
      messages: request.messages,
      tools: [{ name: 'get_weather', input_schema: { type: 'object' } }],
    })
    expect(short.data.input_tokens).toBeGreaterThan(0)
    expect(long.input_tokens).toBeGreaterThan(short.data.input_tokens + 500)
    expect(short.request_id).toMatch(/^req_/)
    expect(short.response.headers.get('x-svc-router-estimated')).toBe('true')
    for (const name of ['x-quota-used', 'x-ratelimit-remaining']) {
      expect(short.response.headers.get(name)).toBe(before.get(name))
    }
  })

  test.each([
    ['a mistyped profile', {}, 'svc-router/fronteir', 404],
    ['a bad key', { apiKey: 'sk_svc_mistyped' }, model, 401],
  ] as const)('it rejects %s like a request for an answer', async (_, options, named, status) => {
    const { client, traffic } = connectAnthropic(service, options)
    const error = await rejectionOf(
      () => client.messages.countTokens({ model: named, messages: request.messages }),
      traffic,
    )
    expect(error.status).toBe(status)
  })

  test('it is limited like the lists, and works when the month is exhausted', async () => {
    const { key } = await service.addAccount(`counts-${randomBytes(4).toString('hex')}`, 'tiny')
    const { client } = connectAnthropic(service, { apiKey: key })
    await client.messages.create(request)
    expect((await client.messages.countTokens({ model, messages: request.messages })).input_tokens).toBeGreaterThan(0)
    clock.startMinute()
    const headers = { 'x-api-key': key, authorization: '' }
    const asked = Array.from({ length: 310 }, () => service.post('/messages/count_tokens', request, headers))
    const statuses = (await Promise.all(asked)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(300)
  })
})

function bodyOf(error: APIError): Record<string, unknown> {
  return (error.error as { error: Record<string, unknown> }).error
}

/**
 * The error of a call, after asserting what holds for every rejection: short, with a request ID, and without the key.
 */
async function rejectionOf(send: () => Promise<unknown>, traffic: Traffic): Promise<APIError> {
  const error = await send().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof APIError)) throw new Error('not rejected with an APIError', { cause: error })
  const { headers, status } = traffic.answers.at(-1)!
  const { message, request_id } = bodyOf(error) as { message: string; request_id: string }
  // The message that users see is the status and our sentence, without JSON.
  expect(error.message).toBe(`${status} ${message}`)
  expect(error.apiMessage).toBe(message)
  expect(message.length).toBeLessThanOrEqual(longestMessage)
  expect(error.requestID).toBe(headers.get('x-request-id'))
  expect(request_id).toBe(error.requestID)
  expect(JSON.stringify(error.error)).not.toMatch(/sk_svc_[A-Za-z0-9]|sk-ant-/)
  return error
}
