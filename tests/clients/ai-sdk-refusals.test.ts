import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { APICallError } from 'ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { linksFor, type Links } from '../../src/domain/links.ts'
import { Service } from '../service.ts'
import { counted, entrances, type Settings } from './ai-clients.ts'
import { plans } from './refusal-plans.ts'
import { withoutSleeping } from './without-sleeping.ts'

const frontier = 'svc-router/frontier'
const longestMessage = 240
const sdkSleep = /provider-utils|delay/
/** The SDK waits only if the wait is below 60 s, and immediately after the minute is exhausted it is 60. */
const untilLessThanAMinuteMs = 1_050
const halfAMinuteMs = 30_000

let service: Service
let links: Links
let spent: { readonly key: string; readonly atMs: number } | undefined
beforeAll(async () => {
  const backends = {
    alpha: { provider: 'alpha', model: 'm' },
    beta: { provider: 'beta', model: 'm' },
  }
  const profiles = { 'my/premium': { backends: ['alpha'], premium: true } }
  service = await Service.start({
    formats: ['openai-chat', 'openai-responses'],
    settings: { plans, backends, profiles },
  })
  links = linksFor(service.config.appUrl)
})
afterAll(() => service.stop())

async function keyOn(plan: keyof typeof plans): Promise<string> {
  return (await service.addAccount(`${plan}-${randomBytes(4).toString('hex')}`, plan)).key
}

/** A key whose minute was exhausted a short while ago and is far from over. */
async function exhaustedKey(): Promise<string> {
  if (spent === undefined || performance.now() - spent.atMs > halfAMinuteMs) {
    const key = await keyOn('slow')
    expect((await service.chat({}, { authorization: `Bearer ${key}` })).status).toBe(200)
    spent = { key, atMs: performance.now() }
  }
  await sleep(Math.max(0, spent.atMs + untilLessThanAMinuteMs - performance.now()))
  return spent.key
}

describe.each(entrances)('$name', ({ ai, model: open }) => {
  /** Both kinds of calls: the message must not depend on them. */
  const ways = [
    {
      way: 'generateText',
      ask: async (settings: Settings, profile: string, maxRetries?: number): Promise<unknown> => {
        const options = maxRetries === undefined ? {} : { maxRetries }
        return rejectionOf(ai.generateText({ model: open(settings, profile), prompt: 'Hello', ...options }))
      },
    },
    {
      way: 'streamText',
      ask: async (settings: Settings, profile: string, maxRetries?: number): Promise<unknown> => {
        const options = maxRetries === undefined ? {} : { maxRetries }
        const errors: unknown[] = []
        const onError = ({ error }: { readonly error: unknown }): void => void errors.push(error)
        const { stream } = ai.streamText({ model: open(settings, profile), prompt: 'Hello', onError, ...options })
        const parts: string[] = []
        for await (const part of stream) parts.push(part.type)
        expect(parts).not.toContain('finish')
        expect(errors).toHaveLength(1)
        return errors[0]
      },
    },
  ]

  /** Asserts the error that the user sees: our sentence, one link, and no part of the key. */
  function refusal(error: unknown, status: number, code: string): APICallError {
    // A retried call would end with a RetryError.
    if (!ai.APICallError.isInstance(error)) throw new Error('not refused at once', { cause: error })
    const body = JSON.parse(error.responseBody ?? '') as { error: Record<string, unknown> }
    expect(error.statusCode).toBe(status)
    expect(body.error).toMatchObject({ code })
    expect(error.message).toBe(body.error['message'])
    expect(error.message.length).toBeLessThanOrEqual(longestMessage)
    expect(error.responseBody).not.toMatch(/sk_svc_[A-Za-z0-9]/)
    return error
  }

  describe.each(ways)('$way', ({ ask }) => {
    test('a mistyped key gets a 401 after one request, with the link to the right one', async () => {
      const { settings, traffic } = counted(service, 'sk_svc_mistyped')
      const error = refusal(await ask(settings, frontier), 401, 'key_malformed')
      expect(error.message).toContain('its checksum is wrong')
      expect(error.message.endsWith(links.accountUrl)).toBe(true)
      expect(traffic.sent).toHaveLength(1)
    })

    test('an exhausted month gets a 402 after one request, with the upgrade link', async () => {
      const { settings, traffic } = counted(service, await keyOn('tiny'))
      await ai.generateText({ model: open(settings, frontier), prompt: 'Hello' })
      const error = refusal(await ask(settings, frontier), 402, 'insufficient_quota')
      expect(error.message).toContain('1 of 1 request used on the Tiny plan')
      expect(error.message.endsWith(links.upgradeUrl)).toBe(true)
      expect(error.responseHeaders).not.toHaveProperty('retry-after')
      expect(traffic.sent).toHaveLength(2)
    })

    test('a premium profile on a free plan gets a 403 after one request that reaches no provider', async () => {
      const { settings, traffic } = counted(service, await keyOn('free'))
      const before = service.providers[0]!.counts().requests
      const error = refusal(await ask(settings, 'my/premium'), 403, 'plan_required')
      expect(error.message).toContain('my/premium requires a premium plan, and this account is on the Free plan.')
      expect(error.message.endsWith(links.upgradeUrl)).toBe(true)
      expect(traffic.sent).toHaveLength(1)
      expect(service.providers[0]!.counts().requests).toBe(before)
    })

    test('a mistyped profile gets a 404 after one request, with the right name', async () => {
      const { settings, traffic } = counted(service)
      const error = refusal(await ask(settings, 'svc-router/fronteir'), 404, 'model_not_found')
      expect(error.message).toContain('Did you mean "svc-router/frontier"?')
      expect(traffic.sent).toHaveLength(1)
    })

    test('an exhausted minute gets a 429 with the time to wait', async () => {
      const { settings, traffic } = counted(service, await keyOn('slow'))
      await ai.generateText({ model: open(settings, frontier), prompt: 'Hello' })
      const error = refusal(await ask(settings, frontier, 0), 429, 'rate_limit_exceeded')
      const seconds = Number(error.responseHeaders!['retry-after'])
      expect(seconds).toBeGreaterThanOrEqual(1)
      expect(seconds).toBeLessThanOrEqual(60)
      expect(error.message).toContain('1 request per minute on the Slow plan')
      expect(error.message.endsWith(`Please try again in ${seconds}s.`)).toBe(true)
      expect(error.isRetryable).toBe(true)
      expect(traffic.sent).toHaveLength(2)
    })

    test('after an exhausted minute, the SDK waits as long as the error says, twice, and then shows our message', async () => {
      const { settings, traffic } = counted(service, await exhaustedKey())
      let error: unknown
      const slept = await withoutSleeping(sdkSleep, async () => {
        error = await ask(settings, frontier)
      })
      if (!ai.RetryError.isInstance(error)) throw new Error('not retried', { cause: error })
      expect(error.message).toMatch(/^Failed after 3 attempts\. Last error: .* Please try again in \d+s\.$/)
      expect(traffic.sent).toHaveLength(3)
      const advised = traffic.answers.slice(0, 2).map(({ headers }) => Number(headers.get('retry-after')) * 1000)
      expect(slept).toEqual(advised)
    })
  })
})

async function rejectionOf(promise: PromiseLike<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
}
