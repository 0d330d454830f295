import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Clock } from '../../../src/runtime/clock.ts'
import { startRequestSweep } from '../../../src/storage/sweeps/request-sweep.ts'

const dayMs = 86_400_000

test('old records are deleted in chunks until none remain, failures are reported, and the sweep can be stopped', async () => {
  let next: { delayMs: number; run: () => void } | undefined
  const clock: Clock = {
    nowMs: () => 100 * dayMs,
    monotonicMs: () => 100 * dayMs,
    after(delayMs, run) {
      next = { delayMs, run }
      return { cancel: () => (next = undefined) }
    },
  }
  let old = 1_200
  let refused = 1_300
  let isBroken = false
  const failures: unknown[] = []
  const store = {
    deleteRequestsBefore(timeMs: number, limit: number): Promise<number> {
      if (isBroken) return Promise.reject(new Error('broken'))
      expect(timeMs).toBe(10 * dayMs)
      const deleted = Math.min(old, limit)
      old -= deleted
      return Promise.resolve(deleted)
    },
    deleteRefusedBefore(timeMs: number, limit: number): Promise<number> {
      expect(timeMs).toBe(10 * dayMs)
      const deleted = Math.min(refused, limit)
      refused -= deleted
      return Promise.resolve(deleted)
    },
  }
  const end = startRequestSweep(store, { retentionMs: 90 * dayMs, clock, onFailed: (error) => failures.push(error) })
  const step = async (): Promise<[number, number | undefined]> => {
    next?.run()
    await turn()
    return [old, next?.delayMs]
  }
  expect(await step()).toEqual([700, 100])
  expect(await step()).toEqual([200, 100])
  expect([await step(), refused]).toEqual([[0, 10_000], 0])
  isBroken = true
  expect(await step()).toEqual([0, 10_000])
  expect(failures).toEqual([new Error('broken')])
  end()
  expect(next).toBeUndefined()
})
