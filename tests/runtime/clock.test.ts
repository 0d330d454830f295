import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'

const hourMs = 3_600_000
const startMs = Date.UTC(2026, 10, 20, 12)

let time: { wallMs: number; monotonicMs: number }
let clock: Clock
let ran: string[]

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  time = { wallMs: startMs, monotonicMs: 5_000 }
  clock = systemClock({ wallMs: () => time.wallMs, monotonicMs: () => time.monotonicMs })
  ran = []
})

afterEach(() => {
  vi.useRealTimers()
})

/** Lets the process run for so long. */
function pass(ms: number): void {
  for (let passedMs = 0; passedMs < ms; passedMs += 50) {
    time.wallMs += 50
    time.monotonicMs += 50
    vi.advanceTimersByTime(50)
  }
}

/** Stops the process for so long: time passes, and nothing runs. */
function pause(ms: number): void {
  time.wallMs += ms
  time.monotonicMs += ms
}

const eventLoopTurned = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test.each([hourMs, -hourMs])('changing the wall clock by %i ms changes the wall time but no duration', (stepMs) => {
  const beforeMs = clock.monotonicMs()
  clock.after(30_000, () => ran.push('coarse'))
  clock.after(500, () => ran.push('exact'))
  time.wallMs += stepMs
  expect(clock.nowMs()).toBe(startMs + stepMs)
  expect(clock.monotonicMs()).toBe(beforeMs)
  pass(450)
  expect(ran).toEqual([])
  pass(50)
  expect(ran).toEqual(['exact'])
  pass(29_450)
  expect(ran).toEqual(['exact'])
  pass(200)
  expect(ran).toEqual(['exact', 'coarse'])
})

test('a pause does not count toward the delay of a long timer', () => {
  clock.after(30_000, () => ran.push('before'))
  pass(10_000)
  pause(35_000)
  clock.after(5_000, () => ran.push('after'))
  pass(4_900)
  expect(ran).toEqual([])
  pass(300)
  expect(ran).toEqual(['after'])
  pass(14_500)
  expect(ran).toEqual(['after'])
  pass(600)
  expect(ran).toEqual(['after', 'before'])
})

test('a short timer that a pause delayed runs after sockets were read, which can cancel it', async () => {
  clock.after(500, () => ran.push('late'))
  const cancelled = clock.after(500, () => ran.push('cancelled'))
  pause(35_000)
  vi.advanceTimersByTime(500)
  cancelled.cancel()
  expect(ran).toEqual([])
  await eventLoopTurned()
  expect(ran).toEqual(['late'])
})
