import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Plan } from '../../src/domain/plans.ts'
import { AccountMeter, minuteMs, periodAt } from '../../src/domain/usage.ts'

const startMs = Date.UTC(2026, 10, 20, 12)
const planOf = (requestsPerMinute: number, requestsPerMonth = 1e6): Plan => ({
  id: 'test',
  name: 'Test',
  requestsPerMinute,
  requestsPerMonth,
  premium: false,
})

/** What an account does: waits, asks, or the process starts again and reads the minute from rounded times. */
const steps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.constant({ type: 'ask' } as const) },
    {
      weight: 2,
      arbitrary: fc.record({ type: fc.constant('wait' as const), ms: fc.integer({ max: 2 ** 26 }).map(shrinkMs) }),
    },
    { weight: 1, arbitrary: fc.constant({ type: 'restart' } as const) },
  ),
  { maxLength: 120 },
)

function shrinkMs(value: number): number {
  return Math.abs(value) / 1024
}

describe('the period', () => {
  test('is the calendar month in UTC, its end not included', () => {
    const december = periodAt(Date.UTC(2026, 11, 31, 23, 59, 59, 999))
    expect(december).toEqual({ id: '2026-12', startMs: Date.UTC(2026, 11, 1), endMs: Date.UTC(2027, 0, 1) })
    expect(periodAt(Date.UTC(2027, 0, 1)).id).toBe('2027-01')
  })
})

describe('the meter of an account', () => {
  test('in any 60 s admits at most the limit, shows what it enforces, and never refuses who waits as told', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), steps, (limit, course) => {
        const plan = planOf(limit)
        let nowMs = startMs
        let meter = new AccountMeter(nowMs, [], 0)
        const admittedMs: number[] = []
        const ask = () => {
          const before = meter.signals(nowMs, plan)
          const refusal = meter.admit(nowMs, plan, 1)
          expect(refusal === undefined).toBe(before.rateRemaining > 0)
          if (refusal === undefined) {
            const oldestMs = admittedMs[admittedMs.length - limit]
            if (oldestMs !== undefined) expect(nowMs - oldestMs).toBeGreaterThanOrEqual(minuteMs)
            admittedMs.push(nowMs)
          }
          const after = meter.signals(nowMs, plan)
          expect(after.quotaUsed + after.quotaRemaining).toBe(after.quotaLimit)
          expect(after.rateRemaining).toBe(before.rateRemaining - (refusal === undefined ? 1 : 0))
          return refusal
        }
        for (const step of course) {
          if (step.type === 'wait') nowMs += step.ms
          if (step.type === 'restart') meter = new AccountMeter(nowMs, admittedMs.map(Math.ceil), admittedMs.length)
          if (step.type !== 'ask') continue
          const refusal = ask()
          if (refusal === undefined) continue
          if (refusal.reason !== 'minute') throw new Error('the month is not used up')
          expect(refusal.retryAfterSeconds).toBeGreaterThanOrEqual(1)
          expect(refusal.retryAfterSeconds).toBeLessThanOrEqual(60)
          nowMs += refusal.retryAfterSeconds * 1000
          expect(ask()).toBeUndefined()
        }
      }),
      { numRuns: 300 },
    )
  })

  test('says when one more request becomes possible: the reset is never later than the wait it tells', () => {
    const plan = planOf(2)
    const meter = new AccountMeter(startMs, [], 0)
    expect(meter.signals(startMs, plan).rateReset).toBe(startMs / 1000)
    meter.admit(startMs, plan, 1)
    meter.admit(startMs + 10_500, plan, 1)
    expect(meter.signals(startMs + 20_000, plan).rateReset).toBe(startMs / 1000 + 60)
    expect(meter.admit(startMs + 20_000, plan, 1)).toEqual({ reason: 'minute', retryAfterSeconds: 40 })
    expect(meter.admit(startMs + 60_000, plan, 1)).toBeUndefined()
    expect(meter.admit(startMs + 60_000, plan, 1)).toEqual({ reason: 'minute', retryAfterSeconds: 11 })
  })

  test('after its plan was lowered tells to wait until enough of the minute is free', () => {
    const meter = new AccountMeter(startMs, [], 0)
    for (const afterMs of [0, 10_000, 20_000, 30_000]) meter.admit(startMs + afterMs, planOf(10), 1)
    const lower = planOf(2)
    expect(meter.signals(startMs + 30_000, lower)).toMatchObject({ rateRemaining: 0, rateReset: startMs / 1000 + 80 })
    expect(meter.admit(startMs + 30_000, lower, 1)).toEqual({ reason: 'minute', retryAfterSeconds: 50 })
    expect(meter.admit(startMs + 79_999, lower, 1)).toMatchObject({ reason: 'minute' })
    expect(meter.admit(startMs + 80_000, lower, 1)).toBeUndefined()
  })

  test('takes units when it admits, gives back what is not charged, and refuses what would pass the month', () => {
    const plan = planOf(100, 10)
    const meter = new AccountMeter(startMs, [], 4)
    expect(meter.admit(startMs, plan, 5)).toBeUndefined()
    expect(meter.signals(startMs, plan)).toMatchObject({ quotaUsed: 9, quotaRemaining: 1 })
    expect(meter.admit(startMs, plan, 2)).toEqual({ reason: 'month', resetsAt: Date.UTC(2026, 11, 1) / 1000 })
    meter.settle(startMs, '2026-11', 5, 0)
    expect(meter.signals(startMs, plan)).toMatchObject({ quotaUsed: 4, quotaRemaining: 6 })
    expect(meter.admit(startMs, plan, 6)).toBeUndefined()
    meter.settle(startMs, '2026-11', 6, 6)
    expect(meter.signals(startMs, plan)).toMatchObject({ quotaUsed: 10, quotaRemaining: 0 })
  })

  test('a refusal takes nothing', () => {
    const meter = new AccountMeter(startMs, [], 0)
    expect(meter.admit(startMs, planOf(5, 0), 1)).toMatchObject({ reason: 'month' })
    expect(meter.signals(startMs, planOf(5, 5))).toMatchObject({ rateRemaining: 5, quotaUsed: 0 })
  })

  test('a plan below what was used leaves nothing, and used and remaining still make the limit', () => {
    const meter = new AccountMeter(startMs, [], 50)
    expect(meter.signals(startMs, planOf(5, 20))).toMatchObject({ quotaLimit: 20, quotaUsed: 20, quotaRemaining: 0 })
  })

  test('from December to January the month starts anew, the minute goes on, and late settlements count for December', () => {
    const newYearMs = Date.UTC(2027, 0, 1)
    const plan = planOf(3, 5)
    const meter = new AccountMeter(newYearMs - 1000, [], 3)
    expect(meter.admit(newYearMs - 1000, plan, 1)).toBeUndefined()
    expect(meter.admit(newYearMs - 1, plan, 1)).toBeUndefined()
    expect(meter.periodId).toBe('2026-12')
    expect(meter.signals(newYearMs - 1, plan)).toMatchObject({ quotaRemaining: 0, quotaReset: newYearMs / 1000 })
    expect(meter.signals(newYearMs, plan)).toMatchObject({ quotaUsed: 0, rateRemaining: 1 })
    meter.settle(newYearMs, '2026-12', 1, 1)
    meter.settle(newYearMs, '2026-12', 1, 0)
    expect(meter.periodId).toBe('2027-01')
    expect(meter.admit(newYearMs, plan, 1)).toBeUndefined()
    expect(meter.signals(newYearMs, plan)).toMatchObject({ quotaUsed: 1, rateRemaining: 0 })
    expect(meter.signals(newYearMs, plan).quotaReset).toBe(Date.UTC(2027, 1, 1) / 1000)
  })

  test('times from before a wall clock was set back block for a minute at most', () => {
    const meter = new AccountMeter(startMs, [startMs + 3_600_000], 0)
    expect(meter.admit(startMs, planOf(1), 1)).toMatchObject({ reason: 'minute', retryAfterSeconds: 60 })
    expect(meter.admit(startMs + 60_000, planOf(1), 1)).toBeUndefined()
  })

  test('is idle only without a request in flight and without one in the minute', () => {
    const meter = new AccountMeter(startMs, [], 7)
    expect(meter.isIdle(startMs)).toBe(true)
    meter.admit(startMs, planOf(1), 1)
    meter.settle(startMs, '2026-11', 1, 1)
    expect(meter.isIdle(startMs + 59_999)).toBe(false)
    expect(meter.isIdle(startMs + 60_000)).toBe(true)
    meter.admit(startMs + 60_000, planOf(1), 1)
    expect(meter.isIdle(startMs + 120_000)).toBe(false)
  })
})
