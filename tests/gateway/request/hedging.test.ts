import { beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/domain/json.ts'
import { FakeGateway, type FakeBackend } from '../fake-gateway.ts'
import { settled } from '../manual-clock.ts'

const messages = [{ role: 'user', content: 'Why?' }]
const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const usual = { stream: true, messages }

function content(backend: FakeBackend, text: string): void {
  backend.head()
  backend.send(chunk({ content: text }))
}

function finish(backend: FakeBackend): void {
  backend.send(`${chunk({}, 'stop')}data: [DONE]\n\n`)
  backend.end()
}

let gateway: FakeGateway
let first: FakeBackend
let second: FakeBackend

/** Sends a request and lets some time pass. */
async function send(waitMs: number, body: JsonObject = usual): Promise<{ readonly end: Promise<unknown> }> {
  const end = gateway.answer('openai-chat', body).then(
    () => undefined,
    (error: unknown) => error,
  )
  await settled()
  await gateway.clock.advance(waitMs)
  await settled()
  return { end }
}

/** The first backend answers this many requests, each after the same time. */
async function learn(requests: number, ms: number): Promise<void> {
  for (let count = 0; count < requests; count++) {
    const { end } = await send(ms)
    content(first, 'Hi')
    await settled()
    finish(first)
    await end
  }
}

const calls = (): number[] => gateway.backends.map(({ requests }) => requests.length)
const lastRecord = () => gateway.settled.at(-1)!.outcome

beforeEach(async () => {
  gateway = new FakeGateway(['openai-chat', 'openai-chat', 'openai-chat', 'openai-chat'])
  gateway.profile.routing = { hedge: true }
  ;[first, second] = gateway.backends as [FakeBackend, FakeBackend]
  await learn(30, 200)
  expect(calls()).toEqual([30, 0, 0, 0])
})

describe('a request whose first backend is slow', () => {
  test('is answered by the second one if that is faster, with one record, one charge, and both attempts', async () => {
    const { end } = await send(799)
    expect(calls()).toEqual([31, 0, 0, 0])
    await gateway.clock.advance(1)
    await settled()
    expect(calls()).toEqual([31, 1, 0, 0])
    gateway.sink.text = ''
    content(second, 'From the second.')
    await settled()
    finish(second)
    expect(await end).toBeUndefined()
    expect(gateway.sink.text).toContain('From the second.')
    expect(gateway.settled.length).toBe(31)
    expect(lastRecord()).toMatchObject({
      charged: 1,
      attempts: [
        { backend: 'b0', outcome: 'cancelled', kind: 0 },
        { backend: 'b1', outcome: 'answered', hedge: true },
      ],
    })
    expect(gateway.sink.head).toMatchObject({ upstream: 'b1', retryCount: 0 })
    // What the aborted one still sends goes nowhere.
    content(first, 'Too late.')
    expect(gateway.sink.text).not.toContain('Too late.')
  })

  test('is answered by the first one if that is faster after all', async () => {
    const { end } = await send(800)
    content(first, 'From the first.')
    await settled()
    finish(first)
    expect(await end).toBeUndefined()
    expect(gateway.sink.text).toContain('From the first.')
    expect(lastRecord().attempts.map(({ backend, outcome }) => [backend, outcome])).toEqual([
      ['b1', 'cancelled'],
      ['b0', 'answered'],
    ])
  })

  test('is answered by the one that is left if the other fails, whichever it is', async () => {
    for (const [fails, answers] of [
      [first, second],
      [second, first],
    ] as const) {
      await learn(20, 200)
      const { end } = await send(900)
      fails.head(503)
      fails.end()
      await settled()
      content(answers, `From ${answers.id}.`)
      await settled()
      finish(answers)
      expect(await end).toBeUndefined()
      expect(gateway.sink.text).toContain(`From ${answers.id}.`)
      expect(lastRecord().attempts.map(({ outcome }) => outcome)).toEqual(['server_error', 'answered'])
      expect(gateway.sink.head).toMatchObject({ upstream: answers.id })
    }
  })

  test('goes on to the next backend if both fail', async () => {
    const third = gateway.backends[2]!
    const { end } = await send(900)
    for (const backend of [first, second]) {
      backend.head(503)
      backend.end()
    }
    await settled()
    content(third, 'From the third.')
    await settled()
    finish(third)
    expect(await end).toBeUndefined()
    expect(lastRecord().attempts.map(({ backend }) => backend)).toEqual(['b0', 'b1', 'b2'])
  })

  test('ends with both aborted if the client disconnects, or the time is up', async () => {
    const { end } = await send(900)
    gateway.sink.disconnect()
    await end
    expect(lastRecord()).toMatchObject({ errorCode: 'client_closed' })
    expect(lastRecord().attempts.map(({ outcome }) => outcome)).toEqual(['cancelled', 'cancelled'])
  })

  test('is asked in one format only once the stream had to be opened', async () => {
    gateway = new FakeGateway(['openai-chat', 'openai-chat'])
    gateway.profile.routing = { hedge: true }
    ;[first, second] = gateway.backends as [FakeBackend, FakeBackend]
    await learn(30, 200)
    const end = gateway.answer('openai-responses', { stream: true, input: 'Why?', store: false })
    await settled()
    await gateway.clock.advance(900)
    await settled()
    expect(calls()).toEqual([31, 1])
    await gateway.clock.advance(9_200)
    await settled()
    content(second, 'Aborted.')
    content(first, 'From the first.')
    await settled()
    finish(first)
    await end
    expect(gateway.sink.text).toContain('From the first.')
    expect(gateway.sink.text).not.toContain('Aborted.')
  })
})

describe('no second backend is asked', () => {
  test.each<[string, JsonObject]>([
    ['a whole answer', { messages }],
    ['reasoning', { ...usual, reasoning_effort: 'high' }],
    ['a long prompt', { stream: true, messages: [{ role: 'user', content: 'x'.repeat(70_000) }] }],
    [
      'the result of a tool',
      {
        stream: true,
        messages: [
          ...messages,
          { role: 'assistant', tool_calls: [{ id: 't', type: 'function', function: { name: 'f', arguments: '{}' } }] },
          { role: 'tool', tool_call_id: 't', content: '1' },
        ],
      },
    ],
  ])('for %s', async (_, body) => {
    await send(5_000, body)
    expect(calls().slice(1)).toEqual([0, 0, 0])
  })

  test('beyond 5% of the requests', async () => {
    let hedged = 0
    for (let count = 0; count < 200; count++) {
      gateway.sink.text = ''
      const before = second.requests.length
      const { end } = await send(30_000)
      hedged += second.requests.length - before
      content(first, 'Slow.')
      await settled()
      finish(first)
      await end
    }
    expect(hedged).toBeGreaterThan(3)
    expect(hedged).toBeLessThanOrEqual((200 + 30) * 0.05)
  })

  test('unless the profile says so', async () => {
    gateway.profile.routing = {}
    await send(5_000)
    expect(calls().slice(1)).toEqual([0, 0, 0])
  })
})

test('abandoned answers do not change the time after which a second backend is asked', async () => {
  const { SlowThreshold } = await import('../../../src/gateway/routing/slow-threshold.ts')
  const [watching, hedging] = [new SlowThreshold(), new SlowThreshold()]
  let state = 1
  const random = (): number => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647
  for (let count = 0; count < 20_000; count++) {
    const ms = 200 / random() ** 0.7
    watching.record(ms, false)
    // An answer that is slow is abandoned as soon as it is known to be.
    const limit = hedging.ms
    if (limit !== undefined && ms > limit) hedging.record(limit + 1, true)
    else hedging.record(ms, false)
  }
  expect(hedging.ms).toBeCloseTo(watching.ms!)
  // The 95th percentile of the distribution.
  expect(watching.ms! / (200 / 0.05 ** 0.7)).toBeGreaterThan(0.6)
  expect(watching.ms! / (200 / 0.05 ** 0.7)).toBeLessThan(1.6)
})
