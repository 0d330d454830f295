import { setTimeout as delay } from 'node:timers/promises'
import OpenAI from 'openai'
import { test as plainTest, describe, expect, vi } from 'vitest'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { HeldTime } from '../held-time.ts'
import { isLongRun } from '../long-run.ts'
import { Service, type ServiceOptions } from '../service.ts'
import {
  eventsOf,
  expectBrokenChat,
  expectBrokenResponses,
  expectWholeChat,
  expectWholeResponses,
  jsonUpToDone,
  lastRecordOf,
  recordOf,
} from './event-stream.ts'

type FormatId = 'openai-chat' | 'openai-responses'

const quick = { connect: '500ms', first_content: '500ms', idle: '400ms' }

type Start = (formats: readonly FormatId[], options?: ServiceOptions) => Promise<Service>

/** Each test has its own service, so that tests, which mostly wait, can run concurrently. */
const test = plainTest.extend<{ start: Start }>({
  start: async ({ onTestFinished }, use) => {
    await use(async (formats, options = {}) => {
      const service = await Service.start({ formats, timeouts: quick, ...options })
      onTestFinished(() => service.stop())
      return service
    })
  },
})

function ask(
  service: Service,
  format: FormatId,
  extra: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<Response> {
  return format === 'openai-chat'
    ? service.chat({ stream: true, ...extra }, headers)
    : service.responses({ stream: true, ...extra }, headers)
}

function script(service: Service, index: number, ...steps: ScriptStep[]): void {
  service.providers[index]!.script(steps)
}

/** Sends a request and disconnects when the signal aborts. */
async function askUntil(service: Service, format: FormatId, signal: AbortSignal): Promise<void> {
  const path = format === 'openai-chat' ? '/chat/completions' : '/responses'
  const content = { input: 'Hello', messages: [{ role: 'user', content: 'Hello' }] }
  const given = fetch(`${service.baseUrl}${path}`, {
    method: 'POST',
    signal,
    headers: {
      authorization: `Bearer ${service.key}`,
      'content-type': 'application/json',
      'user-agent': 'svc-router-tests/1.0',
    },
    body: JSON.stringify({ model: 'svc-router/frontier', stream: true, ...content }),
  })
  const reader = (await given).body!.getReader()
  while (!(await reader.read()).done);
}

/** Expects that the call to the first backend is aborted within `limitMs` after the client disconnects. */
async function expectAbortWithin(service: Service, limitMs: number, abort: AbortController): Promise<void> {
  using held = new HeldTime()
  const leftMs = performance.now()
  abort.abort()
  await expect.poll(() => service.providers[0]!.counts().aborted, { timeout: 5_000, interval: 5 }).toBe(1)
  const abortedMs = service.providers[0]!.counts().abortedAtMs[0]! - performance.timeOrigin
  expect(abortedMs - leftMs - held.within(leftMs, abortedMs)).toBeLessThan(limitMs)
}

const expectBroken = { 'openai-chat': expectBrokenChat, 'openai-responses': expectBrokenResponses }
const expectWhole = { 'openai-chat': expectWholeChat, 'openai-responses': expectWholeResponses }

/** Client and backend formats: equal (relay) and different (translation). */
const pairs = [
  ['openai-chat', 'openai-chat'],
  ['openai-responses', 'openai-responses'],
  ['openai-chat', 'openai-responses'],
  ['openai-responses', 'openai-chat'],
] as const

/**
 * Requests a stream from the backend itself. Returns its number of events, and the positions of the first content event
 * and the terminal event.
 */
async function eventsOfBackend(
  service: Service,
  format: FormatId,
): Promise<{ count: number; firstContent: number; terminal: number }> {
  const body =
    format === 'openai-chat' ? { messages: [{ role: 'user', content: 'Say hello.' }] } : { input: 'Say hello.' }
  const path = format === 'openai-chat' ? '/chat/completions' : '/responses'
  const response = await fetch(`${service.providers[0]!.baseUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'x', stream: true, ...body }),
  })
  const events = eventsOf(await response.text())
  const isContent = (data: string): boolean =>
    format === 'openai-chat' ? /"content":"[^"]/.test(data) : data.includes('"type":"response.output_text.delta"')
  const isTerminal = (data: string): boolean => /"finish_reason":"stop"|"type":"response.completed"/.test(data)
  return {
    count: events.length,
    firstContent: events.findIndex(({ data }) => isContent(data)) + 1,
    terminal: events.findIndex(({ data }) => isTerminal(data)) + 1,
  }
}

describe.each(pairs)('%s from a backend of format %s', (client, backend) => {
  test.for(['fin', 'rst', 'end'] as const)(
    'a stream closed by %s after any of its events never ends like a complete one',
    async (by, { start }) => {
      const service = await start([backend])
      const { count, firstContent, terminal } = await eventsOfBackend(service, backend)
      expect([firstContent > 1, terminal > firstContent, count >= terminal]).toEqual([true, true, true])
      const boundaries = [0, firstContent - 1, firstContent, terminal - 1, terminal, count]
      for (let afterEvents = 0; afterEvents <= count; afterEvents++) {
        // `npm test` takes every event for one way, and for the others those where something begins or ends.
        if (by !== 'fin' && !isLongRun && !boundaries.includes(afterEvents)) continue
        // A success in between, so that failures before content do not open the circuit breaker of the only backend.
        script(service, 0, { do: 'answer' }, { do: 'cut', afterEvents, by })
        await (await ask(service, client)).text()
        const response = await ask(service, client)
        const text = await response.text()
        if (afterEvents < firstContent) {
          // After a lost connection, the only backend is asked once more (contract 7.33).
          const isAskedAgain = by !== 'end'
          expect(response.status, `after ${afterEvents} events`).toBe(isAskedAgain ? 200 : 503)
          if (isAskedAgain) expectWhole[client](text)
          continue
        }
        expect(response.status).toBe(200)
        if (afterEvents < terminal) expectBroken[client](text)
        else expectWhole[client](text)
        const record = await recordOf(service, response.headers.get('x-request-id'))
        expect(record.charged).toBe(1)
        expect(record.errorCode).toBe(afterEvents < terminal ? 'upstream_broken' : undefined)
      }
    },
  )

  test("an error event between content breaks the stream, is charged once, and hides the backend's text", async ({
    start,
  }) => {
    const service = await start([backend])
    script(service, 0, { do: 'error_event', afterEvents: 7, tokenDelayMs: 5 })
    const response = await ask(service, client)
    const text = await response.text()
    expectBroken[client](text)
    expect(text).not.toContain('simulated failure')
    expect(await recordOf(service, response.headers.get('x-request-id'))).toMatchObject({
      charged: 1,
      errorCode: 'upstream_broken',
    })
  })

  test('a backend without [DONE] is still complete', async ({ start }) => {
    const service = await start([backend])
    script(service, 0, { do: 'no_done' })
    expect(expectWhole[client](await (await ask(service, client)).text())).toContain('simulated')
  })

  test('a client that disconnects before content aborts the backend within 100 ms and is charged', async ({
    start,
  }) => {
    const service = await start([backend], { timeouts: { ...quick, first_content: '10s' } })
    script(service, 0, { do: 'slow_first', ms: 8_000 })
    const abort = new AbortController()
    const leaving = expect(askUntil(service, client, abort.signal)).rejects.toThrow()
    await expect.poll(() => service.providers[0]!.counts().open).toBe(1)
    await delay(50)
    await expectAbortWithin(service, 100, abort)
    await leaving
    expect(await lastRecordOf(service)).toMatchObject({ charged: 1, errorCode: 'client_closed' })
  })

  test('a client that disconnects between content aborts the backend within 100 ms and is charged', async ({
    start,
  }) => {
    const service = await start([backend])
    script(service, 0, { do: 'answer', words: 500, tokenDelayMs: 20 })
    const abort = new AbortController()
    const leaving = expect(askUntil(service, client, abort.signal)).rejects.toThrow()
    await expect
      .poll(async () => (await service.store.listRequests({ limit: 1 }))[0]?.state, { timeout: 5_000 })
      .toBe('delivered')
    await expectAbortWithin(service, 100, abort)
    await leaving
    expect(await lastRecordOf(service)).toMatchObject({ charged: 1, errorCode: 'client_closed' })
  })
})

describe.concurrent.each(pairs)('%s from a silent backend of format %s', (client, backend) => {
  test('a backend that falls silent is abandoned at its idle limit', async ({ start }) => {
    const service = await start([backend])
    script(service, 0, { do: 'stall', afterEvents: 7 })
    const startedMs = performance.now()
    const response = await ask(service, client)
    expectBroken[client](await response.text())
    expect(performance.now() - startedMs).toBeGreaterThan(350)
    expect(performance.now() - startedMs).toBeLessThan(1_500)
    await vi.waitFor(() => expect(service.providers[0]!.counts().aborted).toBe(1))
    expect(await recordOf(service, response.headers.get('x-request-id'))).toMatchObject({ charged: 1 })
  })

  test('a stream that pauses between content gets keep-alives, and its numbers keep increasing', async ({ start }) => {
    const service = await start([backend], {
      timeouts: { first_content: '5s', idle: '5s' },
      settings: { keep_alive: '150ms' },
    })
    script(
      service,
      0,
      { do: 'answer', tokenDelayMs: 60, text: 'one two three four five six' },
      { do: 'answer', tokenDelayMs: 400, text: 'one two' },
    )
    await (await ask(service, client)).text()
    // Content at once, so that the backend's own stream is the one that is kept alive.
    service.providers[0]!.script([
      { do: 'answer', tokenDelayMs: 100, text: 'one two three' },
      { do: 'stall', afterEvents: 8, tokenDelayMs: 25 },
    ])
    expect(expectWhole[client](await (await ask(service, client)).text())).toBe('one two three')
    const text = await (await ask(service, client, {}, { 'x-stainless-timeout': '2' })).text()
    expectBroken[client](text, 'upstream_timeout')
    const kept =
      client === 'openai-chat' ? text.match(/^: /gm) : text.match(/^event: (?:response\.in_progress|keepalive)$/gm)
    expect(kept?.length).toBeGreaterThanOrEqual(3)
  })

  test("silence gets keep-alives in the client's own format, before and between content", async ({ start }) => {
    const service = await start([backend], {
      timeouts: { first_content: '5s', idle: '5s' },
      settings: { keep_alive: '150ms' },
    })
    script(service, 0, { do: 'slow_first', ms: 1_400, tokenDelayMs: 400, text: 'one two' })
    const startedMs = performance.now()
    const response = await ask(service, client)
    expect(performance.now() - startedMs, 'headers leave with the first keep-alive').toBeLessThan(1_200)
    expect(response.headers.has('x-svc-router-upstream')).toBe(false)
    expect(response.headers.get('x-quota-used')).toBe('1')
    const text = await response.text()
    expect(expectWhole[client](text)).toBe('one two')
    const kept =
      client === 'openai-chat' ? text.match(/^: /gm) : text.match(/^event: (?:response\.in_progress|keepalive)$/gm)
    expect(kept?.length).toBeGreaterThanOrEqual(10)
    expect(await recordOf(service, response.headers.get('x-request-id'))).toMatchObject({ charged: 1 })
  })
})

describe.concurrent.each(pairs)('after an early keep-alive: %s, and %s first', (client, first) => {
  const second = first === 'openai-chat' ? 'openai-responses' : 'openai-chat'
  const settings = { keep_alive: '120ms' }

  test.for([
    ['silence', { do: 'silence' }],
    ['a stall before content', { do: 'stall', afterEvents: 1 }],
    ['an error event', { do: 'slow_first', ms: 1_300 }],
  ] as const)(
    'after %s of the first backend, the second one answers and the client sees one consistent stream',
    async ([, step], { start }) => {
      const service = await start([first, second, first], { timeouts: { ...quick, first_content: '1s' }, settings })
      script(service, 0, step)
      const response = await ask(service, client)
      expect(expectWhole[client](await response.text())).toContain('from beta')
      const record = await recordOf(service, response.headers.get('x-request-id'))
      expect(record).toMatchObject({
        charged: 1,
        attempts: [
          { backend: 'alpha', outcome: 'timeout' },
          { backend: 'beta', outcome: 'answered' },
        ],
      })
    },
  )

  test('when all backends fail, the stream ends as a failure and nothing is charged', async ({ start }) => {
    const service = await start([first, second], { timeouts: { ...quick, first_content: '1s' }, settings })
    script(service, 0, { do: 'silence' })
    script(service, 1, { do: 'status', status: 503 })
    const response = await ask(service, client)
    expect(response.status).toBe(200)
    expectBroken[client](await response.text(), 'server_is_overloaded')
    const record = await recordOf(service, response.headers.get('x-request-id'))
    expect(record).toMatchObject({
      charged: 0,
      errorCode: 'server_is_overloaded',
      attempts: [{ outcome: 'timeout' }, { outcome: 'server_error' }],
    })
  })
})

describe.concurrent('deadlines', () => {
  test.for([true, false])(
    "the caller's own limit ends the request with 504 before the caller times out (stream: %s)",
    async (stream, { start }) => {
      const service = await start(['openai-chat', 'openai-chat'], {
        timeouts: { first_content: '20s', whole_answer: '20s' },
      })
      script(service, 0, { do: 'silence' })
      const startedMs = performance.now()
      const response = await service.chat({ stream }, { 'x-stainless-timeout': '10' })
      expect(performance.now() - startedMs).toBeLessThan(10_000)
      expect(response.status).toBe(504)
      expect(response.headers.get('x-svc-router-retry-count')).toBe('0')
      expect(await response.json()).toMatchObject({ error: { code: 'upstream_timeout' } })
      const record = await recordOf(service, response.headers.get('x-request-id'))
      expect(record).toMatchObject({ charged: 1, errorCode: 'upstream_timeout', attempts: [{ backend: 'alpha' }] })
      expect(service.providers[1]!.counts().requests).toBe(0)
    },
  )

  test.for(['openai-chat', 'openai-responses'] as const)(
    'a %s stream that reaches the limit ends as a failure within the stream',
    async (client, { start }) => {
      const service = await start([client])
      script(service, 0, { do: 'answer', words: 1_000, tokenDelayMs: 50 })
      const response = await ask(service, client, {}, { 'x-stainless-timeout': '4' })
      expectBroken[client](await response.text(), 'upstream_timeout')
      expect(await recordOf(service, response.headers.get('x-request-id'))).toMatchObject({
        charged: 1,
        errorCode: 'upstream_timeout',
      })
    },
  )
})

describe.concurrent('the openai SDK', () => {
  const sdk = (service: Service): OpenAI => new OpenAI({ baseURL: service.baseUrl, apiKey: service.key, maxRetries: 0 })
  const messages = [{ role: 'user' as const, content: 'Say hello.' }]

  test.for(pairs)(
    'the SDK reads kept-alive, failed-over, and broken streams of %s from %s',
    async ([client, backend], { start }) => {
      const service = await start([backend, backend], {
        timeouts: { ...quick, first_content: '1500ms', idle: '2s' },
        settings: { keep_alive: '120ms' },
      })
      script(service, 0, { do: 'silence' }, { do: 'cut', afterEvents: 8 })
      script(service, 1, { do: 'answer', tokenDelayMs: 150, text: 'kept alive' })
      const read = async (): Promise<string> => {
        let text = ''
        if (client === 'openai-chat') {
          const stream = await sdk(service).chat.completions.create({
            model: 'svc-router/frontier',
            messages,
            stream: true,
          })
          for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
          return text
        }
        const stream = await sdk(service).responses.create({
          model: 'svc-router/frontier',
          input: 'Say hello.',
          stream: true,
        })
        for await (const event of stream) {
          if (event.type === 'response.output_text.delta') text += event.delta
          if (event.type === 'response.failed') throw new Error(event.response.error?.code)
        }
        return text
      }
      expect(await read()).toBe('kept alive')
      await expect(read()).rejects.toThrow()
    },
  )
})

test('a stream of two choices is complete only when both have finished', async ({ start }) => {
  const service = await start(['openai-chat'])
  const whole = await (await ask(service, 'openai-chat', { n: 2 })).text()
  const finished = (text: string): number[] =>
    jsonUpToDone(text).flatMap(({ choices = [] }) =>
      choices.filter((choice) => choice.finish_reason != null).map(({ index }) => index),
    )
  expect(finished(whole)).toEqual([0, 1])
  const firstEnd = eventsOf(whole).findIndex(({ data }) => data.includes('"finish_reason":"stop"')) + 1
  script(service, 0, { do: 'cut', afterEvents: firstEnd + 3 })
  const cut = jsonUpToDone(await (await ask(service, 'openai-chat', { n: 2 })).text())
  expect(cut.at(-1)?.error?.code).toBe('upstream_broken')
})
