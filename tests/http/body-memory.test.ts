import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Gateway } from '../../src/gateway/gateway.ts'
import { AttemptRun } from '../../src/gateway/request/attempt.ts'
import { until } from '../providers/support.ts'
import type { Service } from '../service.ts'
import { shareService } from '../shared-service.ts'

/** Large enough to arrive in several reads. */
const content = 'All of the words that an agent has read so far. '.repeat(4_000)
const share = shareService({ formats: ['openai-chat', 'openai-chat'] })
let service: Service

interface Seen {
  /** The callers' bodies, and those that were sent. */
  readonly received: Buffer[]
  readonly sent: Uint8Array[]
}

/** The bodies of all requests from now on. */
function watch(): Seen {
  const seen: Seen = { received: [], sent: [] }
  // oxlint-disable-next-line typescript/unbound-method
  const { answer } = Gateway.prototype
  // oxlint-disable-next-line typescript/unbound-method
  const { open } = AttemptRun.prototype
  const spies = [
    vi.spyOn(Gateway.prototype, 'answer').mockImplementation(function (this: Gateway, principal, given, sink) {
      seen.received.push(given.bytes)
      return answer.call(this, principal, given, sink)
    }),
    vi.spyOn(AttemptRun.prototype, 'open').mockImplementation(function (this: AttemptRun, request, ...rest) {
      if (typeof request.body !== 'string') seen.sent.push(request.body)
      return open.call(this, request, ...rest)
    }),
  ]
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore()
  })
  return seen
}

const ask = (stream: boolean): Promise<Response> =>
  service.post('/chat/completions', {
    model: 'svc-router/frontier',
    stream,
    messages: [
      { role: 'user', content },
      { role: 'user', content: 'Go on.' },
    ],
  })

/** What the providers received, as parsed bodies. */
function captured(): unknown[] {
  return service.providers.flatMap((provider) => provider.captured().map(({ body }) => JSON.parse(body) as unknown))
}

describe('the memory of a large body', () => {
  beforeEach(async () => {
    service = await share()
  })

  test.each([
    ['a whole answer', false],
    ['a stream', true],
  ])('is freed after %s, without the garbage collector', async (_, stream) => {
    const seen = watch()
    const response = await ask(stream)
    await response.text()
    expect(response.status).toBe(200)
    expect([seen.received.length, seen.sent.length]).toEqual([1, 1])
    await until(() => [...seen.received, ...seen.sent].every(({ byteLength }) => byteLength === 0))
    expect(captured()).toMatchObject([{ messages: [{ content }, { content: 'Go on.' }] }])
  })

  test.each([
    ['a failed call', [{ do: 'status', status: 503 }]],
    ['a call without an answer', [{ do: 'reset' }]],
    ['an answer that is no JSON', [{ do: 'html' }]],
  ] as const)('is kept while it may be sent again: after %s', async (_, script) => {
    const seen = watch()
    service.providers[0]!.script([...script, ...script])
    const response = await ask(false)
    await response.text()
    expect(response.status).toBe(200)
    const bodies = captured()
    expect(bodies.length).toBeGreaterThan(1)
    for (const body of bodies) expect(body).toMatchObject({ messages: [{ content }, { content: 'Go on.' }] })
    await until(() => seen.received.every(({ byteLength }) => byteLength === 0))
  })
})
