import { randomBytes } from 'node:crypto'
import type OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mintKey } from '../../src/domain/keys.ts'
import { linksFor } from '../../src/domain/links.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Service } from '../service.ts'
import type { Traffic } from './counting-fetch.ts'
import { connect, majors } from './openai-clients.ts'
import { plans } from './refusal-plans.ts'
import { withoutSleeping } from './without-sleeping.ts'

const model = 'svc-router/frontier'
const longestMessage = 240
const sdkSleep = /\/openai(-6)?\/(.*\/)?sleep\./

let service: Service
let links: ReturnType<typeof linksFor>
beforeAll(async () => {
  service = await Service.start({ formats: ['openai-chat'], settings: { plans } })
  links = linksFor(service.config.appUrl)
})
afterAll(() => service.stop())

/** The two calls with which every rejection is provoked: the message must not depend on the API. */
const calls = [
  {
    api: 'chat completions',
    send: (client: OpenAI, extra: object = {}): Promise<unknown> =>
      client.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hello' }], ...extra }),
  },
  {
    api: 'responses',
    send: (client: OpenAI, extra: object = {}): Promise<unknown> =>
      client.responses.create({ model, input: 'Hello', ...extra }),
  },
  {
    api: 'streamed responses',
    send: (client: OpenAI, extra: object = {}): Promise<unknown> =>
      client.responses.create({ model, input: 'Hello', stream: true, ...extra }),
  },
] as const

describe.each(majors)('$name', ({ OpenAI }) => {
  describe.each(calls)('$api', ({ send }) => {
    test.each([
      ['no key', { defaultHeaders: { authorization: null } }, 'key_missing', 'accountSetupUrl'],
      ['an empty key', { apiKey: ' ' }, 'key_missing', 'accountSetupUrl'],
      ['a key of another vendor', { apiKey: 'sk-proj-madeupmadeupmadeup' }, 'key_malformed', 'accountUrl'],
      ['a mistyped key', { apiKey: 'sk_svc_mistyped' }, 'key_malformed', 'accountUrl'],
      [
        'a well-formed key that does not exist',
        { apiKey: mintKey(systemRandom()).reveal() },
        'key_inactive',
        'accountUrl',
      ],
    ] as const)('%s gets a 401 after one request', async (_, options, code, link) => {
      const { client, traffic } = connect(OpenAI, service, options)
      const error = await rejectionOf(OpenAI, () => send(client), traffic)
      expect(error).toBeInstanceOf(OpenAI.AuthenticationError)
      expect(error).toMatchObject({ status: 401, code, type: 'authentication_error' })
      expect(error.message.endsWith(links[link])).toBe(true)
      expect(traffic.sent).toHaveLength(1)
    })

    test('a revoked key gets a 401 that says so, after one request', async () => {
      const { key, stored } = await service.addAccount(`revoked-${randomBytes(4).toString('hex')}`, 'free')
      await service.revoke(stored.id)
      const { client, traffic } = connect(OpenAI, service, { apiKey: key })
      const error = await rejectionOf(OpenAI, () => send(client), traffic)
      expect(error).toBeInstanceOf(OpenAI.AuthenticationError)
      expect(error).toMatchObject({ status: 401, code: 'key_revoked', type: 'authentication_error' })
      expect(error.message).toContain('was revoked')
      expect(error.message.endsWith(links.accountUrl)).toBe(true)
      expect(error.error).toMatchObject({
        apiKeyPrefix: 'sk_svc_',
        primaryActionUrl: links.accountUrl,
        keyRecoveryUrl: links.keyRecoveryUrl,
      })
      expect(traffic.sent).toHaveLength(1)
    })

    test('an exhausted month gets a 402 with the upgrade link, after one request and without Retry-After', async () => {
      const { key } = await service.addAccount(`tiny-${randomBytes(4).toString('hex')}`, 'tiny')
      const { client, traffic } = connect(OpenAI, service, { apiKey: key })
      await send(client, { stream: false })
      const error = await rejectionOf(OpenAI, () => send(client), traffic)
      expect(error).toMatchObject({ status: 402, code: 'insufficient_quota', type: 'insufficient_quota' })
      expect(error.message).toContain('1 of 1')
      expect(error.message.endsWith(links.upgradeUrl)).toBe(true)
      expect(error.error).toMatchObject({
        upgradeUrl: links.upgradeUrl,
        billingUrl: links.billingUrl,
        supportUrl: links.supportUrl,
      })
      expect(error.headers!.has('retry-after')).toBe(false)
      expect(error.headers!.get('x-quota-remaining')).toBe('0')
      expect(traffic.sent).toHaveLength(2)
    })

    test('the fusion tool on a free plan gets a 403 with the upgrade link, after one request that reaches no provider', async () => {
      const { key } = await service.addAccount(`free-${randomBytes(4).toString('hex')}`, 'free')
      const { client, traffic } = connect(OpenAI, service, { apiKey: key })
      const before = service.providers[0]!.counts().requests
      const error = await rejectionOf(OpenAI, () => send(client, { tools: [{ type: 'svc-router:fusion' }] }), traffic)
      expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError)
      expect(error).toMatchObject({ status: 403, code: 'plan_required', type: 'permission_error' })
      expect(error.message).toContain('svc-router:fusion requires a premium plan')
      expect(error.message.endsWith(links.upgradeUrl)).toBe(true)
      expect(traffic.sent).toHaveLength(1)
      expect(service.providers[0]!.counts().requests).toBe(before)
    })

    test('a mistyped profile gets a 404 that suggests the right one, after one request', async () => {
      const { client, traffic } = connect(OpenAI, service)
      const error = await rejectionOf(OpenAI, () => send(client, { model: 'svc-router/fronteir' }), traffic)
      expect(error).toBeInstanceOf(OpenAI.NotFoundError)
      expect(error).toMatchObject({ status: 404, code: 'model_not_found', param: 'model' })
      expect(error.message).toContain('Did you mean "svc-router/frontier"?')
      expect(traffic.sent).toHaveLength(1)
    })

    test('an exhausted minute gets a 429 with the time to wait', async () => {
      const { key } = await service.addAccount(`slow-${randomBytes(4).toString('hex')}`, 'slow')
      const { client, traffic } = connect(OpenAI, service, { apiKey: key, maxRetries: 0 })
      await send(client, { stream: false })
      const error = await rejectionOf(OpenAI, () => send(client), traffic)
      expect(error).toBeInstanceOf(OpenAI.RateLimitError)
      expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'rate_limit_error' })
      const seconds = Number(error.headers!.get('retry-after'))
      expect(seconds).toBeGreaterThanOrEqual(1)
      expect(seconds).toBeLessThanOrEqual(60)
      expect(error.message.endsWith(`Please try again in ${seconds}s.`)).toBe(true)
      expect(error.headers!.get('x-ratelimit-remaining')).toBe('0')
    })

    test('after an exhausted minute, the SDK waits exactly as long as the error says', async () => {
      const { key } = await service.addAccount(`waits-${randomBytes(4).toString('hex')}`, 'slow')
      const { client, traffic } = connect(OpenAI, service, { apiKey: key, maxRetries: 2 })
      await send(client, { stream: false })
      const slept = await withoutSleeping(sdkSleep, async () => {
        expect(await rejectionOf(OpenAI, () => send(client), traffic)).toMatchObject({ status: 429 })
      })
      expect(traffic.sent).toHaveLength(4)
      const advised = traffic.answers.slice(1, 3).map(({ headers }) => Number(headers.get('retry-after')) * 1000)
      expect(slept).toEqual(advised)
    })

    test('if no backend answers, the SDK’s own retry succeeds after recovery', async () => {
      const { client, traffic } = connect(OpenAI, service, { maxRetries: 1 })
      service.providers[0]!.script([{ do: 'status', status: 503 }])
      await send(client)
      expect(traffic.answers.map(({ status }) => status)).toEqual([503, 200])
      expect(traffic.answers[0]!.headers.get('x-should-retry')).toBe('true')
      const waitedMs = traffic.sent[1]!.atMs - traffic.sent[0]!.atMs
      expect(waitedMs).toBeGreaterThanOrEqual(Number(traffic.answers[0]!.headers.get('retry-after')) * 1000 - 5)
    })
  })
})

/**
 * The error of a call, after asserting what holds for every rejection: short, with a request ID, and without the key.
 */
async function rejectionOf(
  Class: typeof OpenAI,
  send: () => Promise<unknown>,
  traffic: Traffic,
): Promise<InstanceType<typeof OpenAI.APIError>> {
  const error = await send().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof Class.APIError)) throw new Error('not refused with an APIError', { cause: error })
  const { headers, status } = traffic.answers.at(-1)!
  const { message, request_id } = error.error as { message: string; request_id: string }
  expect(error.message).toBe(`${status} ${message}`)
  expect(message.length).toBeLessThanOrEqual(longestMessage)
  expect(error.requestID).toBe(headers.get('x-request-id'))
  expect(request_id).toBe(error.requestID)
  expect(JSON.stringify(error.error)).not.toMatch(/sk_svc_[A-Za-z0-9]|sk-proj-/)
  return error
}
