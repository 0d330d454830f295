import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { addUpstream } from '../../src/accounts/upstreams.ts'
import { sealingKeys } from '../../src/config/sealing-keys.ts'
import { createVault } from '../../src/providers/auth/vault.ts'
import { Secret } from '../../src/runtime/secret.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { Service } from '../service.ts'
import { recordOf } from './event-stream.ts'

let service: Service
afterEach(() => service.stop())

const settings = {
  plans: {
    max: { name: 'Max', requests_per_minute: 1e6, requests_per_month: 1e7, premium: true, fusions_at_once: 1_000 },
  },
}

function script(place: number, ...steps: ScriptStep[]): void {
  service.providers[place]!.script(steps)
}

/** Whether a request was answered completely, streamed or not. */
async function isServed(model: string, stream: boolean, headers: Record<string, string> = {}): Promise<boolean> {
  const response = await service.chat({ model, stream }, headers)
  const text = await response.text()
  return response.status === 200 && !text.includes('"error"')
}

const mixed = [
  ['svc-router/frontier', true],
  ['svc-router/frontier', false],
  ['svc-router/fusion', true],
] as const

function isServedMixed(place: number): Promise<boolean> {
  const [model, stream] = mixed[place % mixed.length]!
  return isServed(model, stream)
}

describe('after an outage', () => {
  test('after an outage of 1.5 s under mixed traffic with fusion, the first success comes within 30 s and every later request succeeds', async () => {
    service = await Service.start({ settings, timeouts: { first_content: '2s', whole_answer: '4s', idle: '1s' } })
    const failing: readonly ScriptStep[] = [
      { do: 'reset' },
      { do: 'status', status: 500 },
      { do: 'cut', afterEvents: 2 },
      { do: 'silence' },
    ]
    const many = Array.from({ length: 400 }, (_, place) => failing[place % failing.length]!)
    for (const place of [0, 1, 2]) script(place, ...many, { do: 'status', status: 503, repeat: true })
    const ofOutage: Promise<boolean>[] = []
    // A busy machine starts fewer requests in that time.
    for (const endMs = performance.now() + 1_500; performance.now() < endMs || ofOutage.length < 40; await delay(25))
      ofOutage.push(isServedMixed(ofOutage.length))
    const wellMs = performance.now()
    for (const place of [0, 1, 2]) script(place)
    for (let asked = 0; !(await isServedMixed(asked)); asked++) expect(performance.now() - wellMs).toBeLessThan(30_000)
    const later = Array.from({ length: 60 }, (_, place) => delay(place * 50).then(() => isServedMixed(place)))
    expect(await Promise.all(later)).toEqual(later.map(() => true))
    expect((await Promise.all(ofOutage)).filter((ok) => !ok).length, 'it was an outage').toBeGreaterThan(10)
    expect(service.events.map(({ event }) => event)).toEqual(expect.arrayContaining(['backend_down', 'backend_back']))
  }, 60_000)

  test('long non-streaming answers block no other requests', async () => {
    service = await Service.start({ settings, formats: ['openai-chat'] })
    script(0, { do: 'reset', repeat: true })
    for (let count = 0; count < 5; count++) expect(await isServed('svc-router/frontier', false)).toBe(false)
    await delay(1_300)
    script(0, ...Array.from({ length: 64 }, () => ({ do: 'slow_headers', ms: 2_000 }) as const))
    const all = Array.from({ length: 64 }, () => isServed('svc-router/frontier', false))
    expect(await Promise.all(all)).toEqual(all.map(() => true))
  })
})

describe('what counts against a backend', () => {
  test('after a few streams that break after their first content, the fallback is asked', async () => {
    service = await Service.start({ settings })
    script(0, { do: 'cut', afterEvents: 3, repeat: true })
    const served: boolean[] = []
    for (let count = 0; count < 12; count++) served.push(await isServed('svc-router/frontier', true))
    expect(served).toEqual([...Array<boolean>(5).fill(false), ...Array<boolean>(7).fill(true)])
    expect(service.providers[1]!.counts().requests).toBeGreaterThanOrEqual(6)
  })

  test('server errors on images stop images from being sent, but not text', async () => {
    service = await Service.start({ settings, formats: ['openai-chat', 'openai-chat'] })
    const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, picture] }]
    script(0, ...Array.from({ length: 5 }, () => ({ do: 'status', status: 500 }) as const))
    for (let count = 0; count < 8; count++) await (await service.chat({ messages })).text()
    expect(service.providers[0]!.counts().requests).toBe(5)
    const text = await service.chat()
    expect([text.status, text.headers.get('x-svc-router-upstream')]).toEqual([200, 'alpha'])
  })
})

describe('failing over', () => {
  test('a healthy fallback answers 300 requests that time out at once', async () => {
    service = await Service.start({
      settings,
      formats: ['openai-chat', 'openai-chat'],
      facts: { alpha: { timeouts: { first_content: '1500ms' } } },
    })
    script(0, { do: 'silence', repeat: true })
    const all = Array.from({ length: 300 }, () => isServed('svc-router/frontier', true))
    expect(await Promise.all(all)).toEqual(all.map(() => true))
  })

  test('75 hanging requests of one account to its own backends do not affect the failover of others', async () => {
    service = await Service.start({ settings, formats: ['openai-chat', 'openai-chat', 'openai-chat'] })
    const hostile = await service.addAccount('hostile', 'max')
    const own = service.providers[2]!.baseUrl
    const vault = createVault({ ...sealingKeys(service.config.secrets), random: service.accountsDeps.random })
    // Another host name is another failure domain, so this backend is asked next.
    for (const [model, firstContentMs, baseUrl] of [
      ['one', 300, own],
      ['two', 20_000, own.replace('127.0.0.1', 'localhost')],
    ] as const) {
      const credential = new Secret('made-up-credential-0001')
      const timeouts = { firstContentMs, headersMs: firstContentMs }
      const draft = {
        provider: 'custom',
        model,
        baseUrl,
        format: 'openai-chat',
        authHeader: null,
        credential,
        timeouts,
      } as const
      await addUpstream(service.accountsDeps, hostile.account.id, draft, (owner, id, secret) =>
        vault.seal(owner, id, secret),
      )
    }
    script(2, { do: 'silence', repeat: true })
    const abort = new AbortController()
    const authorization = `Bearer ${hostile.key}`
    const messages = [{ role: 'user', content: 'Hang.' }]
    const body = { model: 'svc-router/frontier', stream: true, messages }
    const hanging = Array.from({ length: 75 }, () =>
      service.post('/chat/completions', body, { authorization }, abort.signal).then(
        () => {},
        () => {},
      ),
    )
    // The account's first backend failed all of them; now they wait for the second.
    await expect.poll(() => service.providers[2]!.counts().requests, { timeout: 10_000 }).toBeGreaterThan(135)
    script(0, { do: 'status', status: 503, repeat: true })
    script(1, { do: 'answer' })
    const others = Array.from({ length: 20 }, () => isServed('svc-router/frontier', true))
    expect(await Promise.all(others)).toEqual(others.map(() => true))
    abort.abort()
    await Promise.all(hanging)
  })

  test('a silent backend is abandoned early, unless the caller requested reasoning and the backend has sent headers', async () => {
    service = await Service.start({ settings, timeouts: { headers: '300ms', first_content: '5s' } })
    const slow = { do: 'slow_first', ms: 1_000 } as const
    script(0, { do: 'silence' }, slow, slow)
    for (const [reasoning, upstream] of [
      [{}, 'beta'],
      [{}, 'beta'],
      [{ reasoning_effort: 'high' }, 'alpha'],
    ] as const) {
      const startMs = performance.now()
      const response = await service.chat({ stream: true, ...reasoning })
      await response.text()
      expect([response.headers.get('x-svc-router-upstream'), performance.now() - startMs < 3_000]).toEqual([
        upstream,
        true,
      ])
    }
  })

  test('the last remaining backend gets its full time, even without headers', async () => {
    service = await Service.start({
      settings,
      formats: ['openai-chat'],
      timeouts: { headers: '200ms', first_content: '5s' },
    })
    script(0, { do: 'slow_headers', ms: 900 })
    expect(await isServed('svc-router/frontier', true)).toBe(true)
  })
})

test("a fusion that the caller's own deadline ends is charged", async () => {
  service = await Service.start({ settings })
  for (const place of [0, 1, 2]) script(place, { do: 'silence', repeat: true })
  const messages = [{ role: 'user', content: 'Why?' }]
  const headers = { 'x-stainless-timeout': '1' }
  const response = await service.post('/chat/completions', { model: 'svc-router/fusion', messages }, headers)
  expect(response.status).toBe(504)
  const record = await recordOf(service, response.headers.get('x-request-id'))
  expect(record).toMatchObject({ charged: 1, errorCode: 'upstream_timeout' })
})
