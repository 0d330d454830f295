import { beforeEach, expect, test } from 'vitest'
import { DatabaseClock } from '../../../src/storage/ledger/database-clock.ts'
import { ManualClock } from '../../gateway/manual-clock.ts'

let own: ManualClock
let clock: DatabaseClock
/** How far the database's clock is ahead of the node's. */
let aheadMs: number

beforeEach(() => {
  own = new ManualClock()
  clock = new DatabaseClock(own)
  aheadMs = 10_000
})

/** A statement that reads the database's clock `beforeMs` after it was sent, and returns `afterMs` later. */
function measure(beforeMs: number, afterMs: number): void {
  const sentMs = own.monotonicMs()
  own.skip(beforeMs)
  const databaseMs = own.nowMs() + aheadMs
  own.skip(afterMs)
  clock.note(databaseMs, sentMs)
}

/** How far the known times are ahead of the database's. */
const errors = (): number[] => [clock.earliestMs(), clock.nowMs()].map((ms) => ms - own.nowMs() - aheadMs)

test('the first measurement counts, however long it took', () => {
  measure(6_000, 100)
  expect(errors()).toEqual([-100, 6_000])
  measure(3, 2)
  expect(errors()).toEqual([-2, 3])
})

test('a slow first measurement is replaced by the next shorter one, even if that is not fast', () => {
  measure(3_000, 100)
  measure(150, 150)
  expect(errors()).toEqual([-150, 150])
  measure(200, 200)
  expect(errors()).toEqual([-150, 150])
})

test('a wait for a connection or a lock does not set the clock ahead', () => {
  measure(3, 2)
  measure(6_000, 2)
  expect(errors()).toEqual([-2, 3])
  measure(200, 10)
  expect(errors()).toEqual([-10, 200])
})

test.each([5_000, -5_000])('a step of the clock by %i ms is noticed although the database is slow', (stepMs) => {
  measure(3, 2)
  aheadMs += stepMs
  measure(1_000, 2)
  expect(errors()).toEqual([-2, 1_000])
})
