import { expect, test } from 'vitest'
import { systemClock } from '../../src/domain/clock.ts'

const startMs = Date.UTC(2026, 10, 20, 12)

/** A wall and a counter that a test moves, and the clock over them. */
function opened() {
  const time = { wall: startMs, counter: 5_000 }
  const clock = systemClock({ wallMs: () => time.wall, monotonicMs: () => time.counter })
  return { time, clock }
}

test('after a sleep, in which the counter stood still, the clock goes forward to the wall and stays there', () => {
  const { time, clock } = opened()
  time.wall += 8 * 3_600_000
  time.counter += 20
  expect(clock.nowMs()).toBe(startMs + 8 * 3_600_000)
  time.wall += 100
  time.counter += 100
  expect(clock.nowMs()).toBe(startMs + 8 * 3_600_000 + 100)
})

test('a wall that is set back, or is ahead by no more than a second, changes nothing', () => {
  const { time, clock } = opened()
  time.counter += 50
  time.wall -= 3_600_000
  expect(clock.nowMs()).toBe(startMs + 50)
  time.counter += 50
  time.wall = startMs + 1_100
  expect(clock.nowMs()).toBe(startMs + 100)
  time.counter += 50
  time.wall = startMs + 1_151
  expect(clock.nowMs()).toBe(startMs + 1_151)
  time.wall = startMs
  time.counter += 51
  expect(clock.nowMs()).toBe(startMs + 1_202)
})

test('the wall is asked twenty times a second at most: a sleep shows within 50 ms of being awake', () => {
  const { time, clock } = opened()
  clock.nowMs()
  time.wall += 3_600_000
  time.counter += 49
  expect(clock.nowMs()).toBe(startMs + 49)
  time.counter += 1
  expect(clock.nowMs()).toBe(startMs + 3_600_000)
})
