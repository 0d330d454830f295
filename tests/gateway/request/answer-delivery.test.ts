import { expect, test } from 'vitest'
import type { AnswerSink } from '../../../src/gateway/ports.ts'
import { AnswerDelivery } from '../../../src/gateway/request/answer-delivery.ts'
import type { AttemptRun } from '../../../src/gateway/request/attempt.ts'
import { ManualClock } from '../manual-clock.ts'

const keepAliveMs = 100

/** What a client receives while its backend is silent for a second, before or after the last event has arrived. */
async function writtenWhileSilent(finished: boolean): Promise<string[]> {
  const clock = new ManualClock()
  const written: string[] = []
  const run = {
    lane: { finished, encoding: 'latin1', keepAlive: () => ': keep-alive\n\n' },
    lastEventMs: clock.monotonicMs(),
    longestSilenceMs: 60_000,
  }
  const sink = { onDrain: () => {}, write: (text: string) => written.push(text) > 0 }
  const delivery = new AnswerDelivery(
    run as unknown as AttemptRun,
    sink as unknown as AnswerSink,
    clock,
    keepAliveMs,
    () => {},
  )
  await clock.advance(10 * keepAliveMs)
  delivery.broke(new Error('the test is over'))
  return written
}

test('a silent stream gets keep-alives', async () => {
  expect((await writtenWhileSilent(false)).length).toBeGreaterThanOrEqual(5)
})

test('no keep-alive follows the last event, which may wait until the answer is stored', async () => {
  expect(await writtenWhileSilent(true)).toEqual([])
})
