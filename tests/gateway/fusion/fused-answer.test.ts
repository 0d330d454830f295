import { expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { formatById } from '../../../src/formats/formats.ts'
import {
  FusedAnswer,
  type FusedAnswerDeps,
  type FusionEnd,
  type FusionSession,
} from '../../../src/gateway/fusion/fused-answer.ts'
import type { AllowedRequest } from '../../../src/gateway/ports.ts'
import { LearnedLimits } from '../../../src/gateway/routing/learned-limits.ts'
import { contextOf } from '../../formats/exchange.ts'
import { FakeBackend } from '../fake-gateway.ts'
import { ManualClock } from '../manual-clock.ts'

const dayMs = 86_400_000
const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 2, reasoningTokens: 0, source: 'counted' } as const

/** A fused answer in the format of chat completions, made by `make`. */
function fused(stream: boolean, make: (session: FusionSession) => Promise<FusionEnd>) {
  const clock = new ManualClock()
  const context = contextOf(formatById('openai-chat').readRequest({ model: 'p', messages: [], stream }))
  const backends = [new FakeBackend('b0', 'openai-chat'), new FakeBackend('b1', 'openai-chat')]
  const learned = new LearnedLimits(clock)
  const deps = { clock, learned, formats: formatById, randomBytes: () => new Uint8Array(1), keepAliveMs: 10_000 }
  const request = { id: 'req_1', format: 'openai-chat' } as AllowedRequest
  const options = { request, context, accountId: 'a', backends, totalMs: 2 * dayMs, make }
  return { clock, answer: new FusedAnswer(deps as unknown as FusedAnswerDeps, options), backends }
}

/** A fusion that waits for `begin` before it answers. */
function waiting() {
  const begin = Promise.withResolvers<void>()
  const make = async ({ port }: FusionSession): Promise<FusionEnd> => {
    await begin.promise
    void port.emit([{ type: 'start' }, { type: 'text', text: 'Four.' }, { type: 'finish', reason: 'stop' }])
    return { usage }
  }
  return { begin: begin.resolve, make }
}

test.each([true, false])('a fused answer has no deadline of its own (stream: %s)', async (stream) => {
  const { begin, make } = waiting()
  const { clock, answer } = fused(stream, make)
  const ready = answer.firstContent()
  await clock.advance(dayMs + 1)
  expect([clock.waiting, answer.current?.longestSilenceMs]).toEqual([0, undefined])
  begin()
  let text = ''
  const run = await ready
  const write = (written: string | Buffer): void => void (text += written.toString())
  run.flowTo({ write, ended: write, broke: (error) => expect.fail(error.message) })
  expect(text).toContain('Four.')
  expect(run.lane.usage).toEqual(usage)
})

test('its headers name the fusion, or the one backend that answered, and never a model', () => {
  const { answer, backends } = fused(true, async (session) => {
    session.answeredBy(backends[1]!, 1)
    return { usage }
  })
  expect([answer.origin, answer.retryCount]).toEqual([{ id: 'fusion', simulated: false }, 0])
  answer.firstContent().catch(() => {})
  expect([answer.origin, answer.retryCount]).toEqual([{ id: 'b1', simulated: false }, 1])
})

test.each([
  [true, new UpstreamError('broken')],
  [false, new ServiceError('record_unavailable')],
])(
  'if its budgets cannot be read, it says that nothing was counted only if nothing was sent (%s)',
  async (sent, end) => {
    const { answer } = fused(true, async ({ port }) => {
      if (sent) void port.emit([{ type: 'start' }, { type: 'text', text: 'Four.' }])
      await Promise.resolve()
      return { usage, error: new ServiceError('record_unavailable') }
    })
    const delivered = answer.firstContent().then(
      (run) =>
        new Promise((_, reject) => {
          run.flowTo({ write: () => {}, ended: () => {}, broke: reject })
        }),
    )
    await expect(delivered).rejects.toMatchObject(end)
  },
)

test('its end aborts the fusion and waits until it has stopped, but at most a second', async () => {
  let signal: AbortSignal | undefined
  const { clock, answer } = fused(true, (session) => {
    signal = session.signal
    return new Promise(() => {})
  })
  const failed = expect(answer.firstContent()).rejects.toMatchObject(new UpstreamError('cancelled'))
  await clock.advance(10)
  let isEnded = false
  const ended = answer.end().then(() => (isEnded = true))
  await failed
  await clock.advance(900)
  expect([signal?.aborted, isEnded]).toEqual([true, false])
  await clock.advance(200)
  await ended
  expect(clock.waiting).toBe(0)
})
