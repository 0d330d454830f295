import { expect, test } from 'vitest'
import { HourTally } from '../../src/domain/hour-tally.ts'

const minuteMs = 60_000

test('the tally counts results within the last hour and then drops them', () => {
  const tally = new HourTally(() => ['alpha', 'beta'])
  tally.note(0, 'alpha', true, 100)
  tally.note(minuteMs, 'alpha', true, 300)
  tally.note(10 * minuteMs, 'alpha', true)
  tally.note(59 * minuteMs, 'alpha', false)
  tally.note(59 * minuteMs, 'nobody', false)
  expect(tally.read(59 * minuteMs, 'alpha')).toEqual({ answered: 3, failed: 1, timed: 2, sumMs: 400 })
  expect(tally.read(66 * minuteMs, 'alpha')).toEqual({ answered: 1, failed: 1, timed: 0, sumMs: 0 })
  expect(tally.read(200 * minuteMs, 'alpha')).toEqual({ answered: 0, failed: 0, timed: 0, sumMs: 0 })
  expect(tally.read(0, 'beta')).toEqual({ answered: 0, failed: 0, timed: 0, sumMs: 0 })
  expect(tally.read(0, 'nobody')).toEqual({ answered: 0, failed: 0, timed: 0, sumMs: 0 })
})

test('the tally never has more than thirteen slots of five minutes', () => {
  const tally = new HourTally(() => ['alpha'])
  for (let minute = 0; minute < 10_000; minute++) tally.note(minute * minuteMs, 'alpha', true, 10)
  expect(tally.read(9_999 * minuteMs, 'alpha').answered).toBe(65)
})
