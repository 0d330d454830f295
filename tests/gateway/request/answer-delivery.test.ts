import { expect, test } from 'vitest'
import type { AnswerSink } from '../../../src/gateway/ports.ts'
import { AnswerDelivery } from '../../../src/gateway/request/answer-delivery.ts'
import type { AttemptRun } from '../../../src/gateway/request/attempt.ts'
import { ManualClock } from '../manual-clock.ts'

const keepAliveMs = 100

interface Silence {
  /** Whether the last event has arrived. */
  readonly finished: boolean
  readonly longestSilenceMs: number | undefined
  readonly forMs: number
}

/** What a client receives while its backend is silent, and whether the delivery gave the backend up. */
async function deliverySilent({ finished, longestSilenceMs, forMs }: Silence) {
  const clock = new ManualClock()
  const written: string[] = []
  const passed: number[] = []
  const run = {
    lane: { finished, encoding: 'latin1', keepAlive: () => ': keep-alive\n\n' },
    lastEventMs: clock.monotonicMs(),
    longestSilenceMs,
    passSilence: () => void passed.push(clock.monotonicMs()),
  }
  const sink = { onDrain: () => {}, write: (text: string) => written.push(text) > 0 }
  const delivery = new AnswerDelivery(
    run as unknown as AttemptRun,
    sink as unknown as AnswerSink,
    clock,
    keepAliveMs,
    () => {},
  )
  await clock.advance(forMs)
  delivery.broke(new Error('the test is over'))
  return { written, isGivenUp: passed.length > 0 }
}

test('a silent stream gets keep-alives', async () => {
  const { written } = await deliverySilent({ finished: false, longestSilenceMs: 60_000, forMs: 10 * keepAliveMs })
  expect(written.length).toBeGreaterThanOrEqual(5)
})

test('no keep-alive follows the last event, which may wait until the answer is stored', async () => {
  const { written } = await deliverySilent({ finished: true, longestSilenceMs: 60_000, forMs: 10 * keepAliveMs })
  expect(written).toEqual([])
})

test.each([
  [30_000, true],
  [undefined, false],
])('with a silence limit of %s ms, being given up after a minute is %s', async (longestSilenceMs, isGivenUp) => {
  const end = await deliverySilent({ finished: false, longestSilenceMs, forMs: 60_000 })
  expect(end.isGivenUp).toBe(isGivenUp)
  if (!isGivenUp) expect(end.written.length).toBeGreaterThan(500)
})
