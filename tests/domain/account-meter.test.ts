import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AccountMeter, type KeyRate, momentAt, periodAt } from '../../src/domain/account-meter.ts'
import type { Plan } from '../../src/domain/plans.ts'
import { dayMs } from '../../src/runtime/durations.ts'
import { minuteMs } from '../../src/runtime/minute-log.ts'

const startMs = Date.UTC(2026, 10, 20, 12)
const planOf = (requestsPerMinute: number, requestsPerMonth = 1e6): Plan => ({
  id: 'test',
  name: 'Test',
  requestsPerMinute,
  requestsPerMonth,
  premium: false,
})

/** One admission of so many units, with one of the account's keys. */
const asked = (units: number, keyId = 'key_1') => ({ keyId, units })
/** What is read of the month's units. */
const november = (used: number) => [{ periodId: '2026-11', used }]
/** What is read of the last minute after a restart: times are kept rounded up. */
const recent = (timesMs: readonly number[], keyId = 'key_1') =>
  timesMs.map((atMs) => ({ atMs: Math.ceil(atMs), keyId }))

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

describe('the billing period', () => {
  test('is the calendar month in UTC, excluding its end', () => {
    const december = periodAt(Date.UTC(2026, 11, 31, 23, 59, 59, 999))
    expect(december).toEqual({ id: '2026-12', startMs: Date.UTC(2026, 11, 1), endMs: Date.UTC(2027, 0, 1) })
    expect(periodAt(Date.UTC(2027, 0, 1)).id).toBe('2027-01')
  })
})

describe('the meter of an account', () => {
  test('admits at most the limit in any 60 s, shows what it enforces, and never rejects a client that waited as told', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), steps, (limit, course) => {
        const plan = planOf(limit)
        let nowMs = startMs
        let meter = new AccountMeter(momentAt(nowMs), [], [])
        const admittedMs: number[] = []
        const ask = () => {
          const before = meter.signals(momentAt(nowMs), plan)
          const refusal = meter.admit(momentAt(nowMs), plan, asked(1))
          expect(refusal === undefined).toBe(before.rateRemaining > 0)
          if (refusal === undefined) {
            const oldestMs = admittedMs[admittedMs.length - limit]
            if (oldestMs !== undefined) expect(nowMs - oldestMs).toBeGreaterThanOrEqual(minuteMs)
            admittedMs.push(nowMs)
          }
          const after = meter.signals(momentAt(nowMs), plan)
          expect(after.quotaUsed + after.quotaRemaining).toBe(after.quotaLimit)
          expect(after.rateRemaining).toBe(before.rateRemaining - (refusal === undefined ? 1 : 0))
          return refusal
        }
        for (const step of course) {
          if (step.type === 'wait') nowMs += step.ms
          if (step.type === 'restart')
            meter = new AccountMeter(momentAt(nowMs), recent(admittedMs), november(admittedMs.length))
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

  test('reports when one more request becomes possible, never later than the wait in its denial', () => {
    const plan = planOf(2)
    const meter = new AccountMeter(momentAt(startMs), [], [])
    expect(meter.signals(momentAt(startMs), plan).rateReset).toBe(startMs / 1000)
    meter.admit(momentAt(startMs), plan, asked(1))
    meter.admit(momentAt(startMs + 10_500), plan, asked(1))
    expect(meter.signals(momentAt(startMs + 20_000), plan).rateReset).toBe(startMs / 1000 + 60)
    expect(meter.admit(momentAt(startMs + 20_000), plan, asked(1))).toEqual({
      reason: 'minute',
      limit: 2,
      isOfKey: false,
      retryAfterSeconds: 40,
    })
    expect(meter.admit(momentAt(startMs + 60_000), plan, asked(1))).toBeUndefined()
    expect(meter.admit(momentAt(startMs + 60_000), plan, asked(1))).toEqual({
      reason: 'minute',
      limit: 2,
      isOfKey: false,
      retryAfterSeconds: 11,
    })
  })

  test('after a change to a smaller plan, reports the wait until enough of the minute is free', () => {
    const meter = new AccountMeter(momentAt(startMs), [], [])
    for (const afterMs of [0, 10_000, 20_000, 30_000]) meter.admit(momentAt(startMs + afterMs), planOf(10), asked(1))
    const lower = planOf(2)
    expect(meter.signals(momentAt(startMs + 30_000), lower)).toMatchObject({
      rateRemaining: 0,
      rateReset: startMs / 1000 + 80,
    })
    expect(meter.admit(momentAt(startMs + 30_000), lower, asked(1))).toEqual({
      reason: 'minute',
      limit: 2,
      isOfKey: false,
      retryAfterSeconds: 50,
    })
    expect(meter.admit(momentAt(startMs + 79_999), lower, asked(1))).toMatchObject({ reason: 'minute' })
    expect(meter.admit(momentAt(startMs + 80_000), lower, asked(1))).toBeUndefined()
  })

  test("takes units at admission, refunds uncharged ones, and denies requests above the month's quota", () => {
    const plan = planOf(100, 10)
    const meter = new AccountMeter(momentAt(startMs), [], november(4))
    expect(meter.admit(momentAt(startMs), plan, asked(5))).toBeUndefined()
    expect(meter.signals(momentAt(startMs), plan)).toMatchObject({ quotaUsed: 9, quotaRemaining: 1 })
    expect(meter.admit(momentAt(startMs), plan, asked(2))).toEqual({
      reason: 'month',
      resetsAt: Date.UTC(2026, 11, 1) / 1000,
    })
    meter.settle('2026-11', 5, 0)
    expect(meter.signals(momentAt(startMs), plan)).toMatchObject({ quotaUsed: 4, quotaRemaining: 6 })
    expect(meter.admit(momentAt(startMs), plan, asked(6))).toBeUndefined()
    meter.settle('2026-11', 6, 6)
    expect(meter.signals(momentAt(startMs), plan)).toMatchObject({ quotaUsed: 10, quotaRemaining: 0 })
  })

  test('takes nothing for a denied request', () => {
    const meter = new AccountMeter(momentAt(startMs), [], [])
    expect(meter.admit(momentAt(startMs), planOf(5, 0), asked(1))).toMatchObject({ reason: 'month' })
    expect(meter.signals(momentAt(startMs), planOf(5, 5))).toMatchObject({ rateRemaining: 5, quotaUsed: 0 })
  })

  test('with a plan smaller than the usage, nothing remains, and used plus remaining still equals the limit', () => {
    const meter = new AccountMeter(momentAt(startMs), [], november(50))
    expect(meter.signals(momentAt(startMs), planOf(5, 20))).toMatchObject({
      quotaLimit: 20,
      quotaUsed: 20,
      quotaRemaining: 0,
    })
  })

  test('from December to January, the month restarts, the minute continues, and late settlements count for December', () => {
    const newYearMs = Date.UTC(2027, 0, 1)
    const plan = planOf(3, 5)
    const meter = new AccountMeter(momentAt(newYearMs - 1000), [], [{ periodId: '2026-12', used: 3 }])
    expect(meter.admit(momentAt(newYearMs - 1000), plan, asked(1))).toBeUndefined()
    expect(meter.admit(momentAt(newYearMs - 1), plan, asked(1))).toBeUndefined()
    expect(meter.periodId).toBe('2026-12')
    expect(meter.signals(momentAt(newYearMs - 1), plan)).toMatchObject({
      quotaRemaining: 0,
      quotaReset: newYearMs / 1000,
    })
    expect(meter.signals(momentAt(newYearMs), plan)).toMatchObject({ quotaUsed: 0, rateRemaining: 1 })
    meter.settle('2026-12', 1, 1)
    meter.settle('2026-12', 1, 0)
    expect(meter.periodId).toBe('2027-01')
    expect(meter.admit(momentAt(newYearMs), plan, asked(1))).toBeUndefined()
    expect(meter.signals(momentAt(newYearMs), plan)).toMatchObject({ quotaUsed: 1, rateRemaining: 0 })
    expect(meter.signals(momentAt(newYearMs), plan).quotaReset).toBe(Date.UTC(2027, 1, 1) / 1000)
  })

  const inDays = (days: number) => momentAt(startMs + days * dayMs)

  test('a month that begins again, after the clock was set back, continues with what is stored of it', () => {
    const plan = planOf(9, 5)
    const meter = new AccountMeter(inDays(0), [], [...november(2), { periodId: '2026-12', used: 4 }])
    expect(meter.signals(inDays(0), plan)).toMatchObject({ quotaUsed: 2 })
    expect(meter.signals(inDays(20), plan)).toMatchObject({ quotaUsed: 4 })
    expect(meter.admit(inDays(20), plan, asked(1))).toBeUndefined()
    meter.settle('2026-12', 1, 1)
    expect(meter.admit(inDays(20), plan, asked(1))).toMatchObject({ reason: 'month' })
    // November once more, then December, and January, of which nothing is stored.
    expect(meter.signals(inDays(0), plan)).toMatchObject({ quotaUsed: 2 })
    expect(meter.signals(inDays(20), plan)).toMatchObject({ quotaUsed: 5 })
    expect(meter.signals(inDays(50), plan)).toMatchObject({ quotaUsed: 0 })
  })

  test('an earlier month is not entered before it is known what is stored of it, whatever ends meanwhile', () => {
    const plan = planOf(9, 5)
    const meter = new AccountMeter(inDays(20), [], [{ periodId: '2026-12', used: 1 }])
    for (let count = 0; count < 2; count++) meter.admit(inDays(20), plan, asked(1))
    meter.settle('2026-12', 1, 1)
    const shown = { quotaUsed: 3, quotaReset: Date.UTC(2027, 0, 1) / 1000 }
    expect(meter.signals(inDays(0), plan)).toMatchObject(shown)
    expect(meter.isIdle(inDays(0))).toBe(false)
    expect(meter.covers(inDays(0).period)).toBe(false)
    // The store has the charge of December, too.
    meter.extend(inDays(0).period, [...november(5), { periodId: '2026-12', used: 2 }])
    expect(meter.covers(inDays(0).period)).toBe(true)
    expect(meter.admit(inDays(0), plan, asked(1))).toMatchObject({ reason: 'month' })
    expect(meter.signals(inDays(0), plan)).toMatchObject({ quotaUsed: 5, quotaReset: Date.UTC(2026, 11, 1) / 1000 })
    expect(meter.signals(inDays(20), plan)).toMatchObject(shown)
  })

  test('of months that are over, the last three are counted on, and earlier ones are to be read again', () => {
    const plan = planOf(99, 99)
    const meter = new AccountMeter(inDays(0), [], november(7))
    for (let month = 1; month <= 4; month++) expect(meter.admit(inDays(month * 31), plan, asked(1))).toBeUndefined()
    meter.settle('2026-12', 1, 1)
    expect(meter.periodId).toBe('2027-03')
    expect([meter.covers(inDays(0).period), meter.covers(inDays(31).period)]).toEqual([false, true])
    expect(meter.signals(inDays(31), plan)).toMatchObject({ quotaUsed: 1 })
    meter.extend(inDays(0).period, november(8))
    expect(meter.signals(inDays(0), plan)).toMatchObject({ quotaUsed: 8 })
  })

  test('after the wall clock was set back, earlier times block for at most a minute', () => {
    const meter = new AccountMeter(momentAt(startMs), recent([startMs + 3_600_000]), [])
    expect(meter.admit(momentAt(startMs), planOf(1), asked(1))).toMatchObject({
      reason: 'minute',
      retryAfterSeconds: 60,
    })
    expect(meter.admit(momentAt(startMs + 60_000), planOf(1), asked(1))).toBeUndefined()
  })

  test('is idle only without a request in flight or in the last minute', () => {
    const meter = new AccountMeter(momentAt(startMs), [], november(7))
    expect(meter.isIdle(momentAt(startMs))).toBe(true)
    meter.admit(momentAt(startMs), planOf(1), asked(1))
    meter.settle('2026-11', 1, 1)
    expect(meter.isIdle(momentAt(startMs + 59_999))).toBe(false)
    expect(meter.isIdle(momentAt(startMs + 60_000))).toBe(true)
    meter.admit(momentAt(startMs + 60_000), planOf(1), asked(1))
    expect(meter.isIdle(momentAt(startMs + 120_000))).toBe(false)
  })
})

/** What two keys of one account do, of which the first may get and lose a limit of its own while it works. */
const keySteps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ type: fc.constant('ask' as const), key: fc.constantFrom('key_1', 'key_2') }) },
    {
      weight: 3,
      arbitrary: fc.record({ type: fc.constant('wait' as const), ms: fc.integer({ max: 2 ** 25 }).map(shrinkMs) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant('limit' as const), perMinute: fc.integer({ min: 1, max: 4 }) }),
    },
    { weight: 1, arbitrary: fc.constant({ type: 'lift' } as const) },
    { weight: 1, arbitrary: fc.constant({ type: 'restart' } as const) },
  ),
  { maxLength: 150 },
)

describe("the limit of a key within its account's minute", () => {
  test("is enforced with the account's in any 60 s after a change; the shown limit rejects, and a client that waited as told is never rejected", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), keySteps, (limit, course) => {
        const plan = planOf(limit)
        let nowMs = startMs
        let meter = new AccountMeter(momentAt(nowMs), [], [])
        let rate: KeyRate | undefined
        const admitted: { atMs: number; keyId: string }[] = []
        const openOf = (keyId?: string) =>
          admitted.filter((one) => one.atMs + minuteMs > nowMs && (keyId ?? one.keyId) === one.keyId).length
        const ask = (keyId: string) => {
          const own = keyId === rate?.keyId ? rate : undefined
          const before = meter.signals(momentAt(nowMs), plan, own)
          const refusal = meter.admit(momentAt(nowMs), plan, asked(1, keyId), own)
          const isFree = openOf() < limit && (own === undefined || openOf(keyId) < own.perMinute)
          expect(refusal === undefined).toBe(isFree)
          expect(before.rateRemaining > 0).toBe(isFree)
          const isOfKey =
            before.rateLimit === own?.perMinute && before.rateLimit - before.rateRemaining === openOf(keyId)
          const isOfAccount =
            before.rateLimit === limit && before.rateLimit - before.rateRemaining === Math.min(limit, openOf())
          // After a limit is lowered more may be open than it allows: then all of it is shown as used.
          const isPassed = before.rateRemaining === 0
          expect(isOfKey || isOfAccount || isPassed).toBe(true)
          if (refusal === undefined) {
            admitted.push({ atMs: nowMs, keyId })
            expect(meter.signals(momentAt(nowMs), plan, own).rateRemaining).toBe(before.rateRemaining - 1)
          } else if (refusal.reason === 'minute') expect(refusal.limit).toBe(before.rateLimit)
          return refusal
        }
        for (const step of course) {
          if (step.type === 'wait') nowMs += step.ms
          if (step.type === 'limit') rate = { keyId: 'key_1', perMinute: step.perMinute }
          if (step.type === 'lift') rate = undefined
          if (step.type === 'restart') {
            const read = admitted.map(({ atMs, keyId }) => ({ atMs: Math.ceil(atMs), keyId }))
            for (const one of admitted) one.atMs = Math.ceil(one.atMs)
            nowMs = Math.ceil(nowMs)
            meter = new AccountMeter(momentAt(nowMs), read, november(admitted.length))
          }
          if (step.type !== 'ask') continue
          const refusal = ask(step.key)
          if (refusal === undefined) continue
          if (refusal.reason !== 'minute') throw new Error('the month is not used up')
          nowMs += refusal.retryAfterSeconds * 1000
          expect(ask(step.key)).toBeUndefined()
        }
      }),
      { numRuns: 500 },
    )
  })

  test("is shown while it has less left than the account's", () => {
    const plan = planOf(4)
    const rate = { keyId: 'key_1', perMinute: 3 }
    const meter = new AccountMeter(momentAt(startMs), [], [])
    expect(meter.signals(momentAt(startMs), plan, rate)).toMatchObject({ rateLimit: 3, rateRemaining: 3 })
    meter.admit(momentAt(startMs), plan, asked(1, 'key_1'), rate)
    expect(meter.signals(momentAt(startMs), plan, rate)).toMatchObject({ rateLimit: 3, rateRemaining: 2 })
    for (let time = 0; time < 2; time++) meter.admit(momentAt(startMs + 5_000), plan, asked(1, 'key_2'))
    expect(meter.signals(momentAt(startMs + 5_000), plan, rate)).toMatchObject({ rateLimit: 4, rateRemaining: 1 })
    expect(meter.signals(momentAt(startMs + 5_000), plan)).toMatchObject({ rateLimit: 4, rateRemaining: 1 })
  })

  test('if both are used up, the message and the wait are those of the longer one', () => {
    const plan = planOf(2)
    const rate = { keyId: 'key_1', perMinute: 1 }
    const meter = new AccountMeter(momentAt(startMs), [], [])
    meter.admit(momentAt(startMs), plan, asked(1, 'key_2'))
    meter.admit(momentAt(startMs + 10_000), plan, asked(1, 'key_1'), rate)
    expect(meter.admit(momentAt(startMs + 20_000), plan, asked(1, 'key_1'), rate)).toEqual({
      reason: 'minute',
      limit: 1,
      isOfKey: true,
      retryAfterSeconds: 50,
    })
    expect(meter.admit(momentAt(startMs + 20_000), plan, asked(1, 'key_2'))).toMatchObject({
      limit: 2,
      retryAfterSeconds: 40,
    })
  })

  test("does not raise the plan's limit", () => {
    const plan = planOf(1)
    const rate = { keyId: 'key_1', perMinute: 100 }
    const meter = new AccountMeter(momentAt(startMs), [], [])
    expect(meter.signals(momentAt(startMs), plan, rate)).toMatchObject({ rateLimit: 1, rateRemaining: 1 })
    expect(meter.admit(momentAt(startMs), plan, asked(1), rate)).toBeUndefined()
    expect(meter.admit(momentAt(startMs), plan, asked(1), rate)).toMatchObject({ isOfKey: false, limit: 1 })
  })

  test('is exact for hundreds of keys, although not all have their own log', () => {
    const plan = planOf(10_000)
    const meter = new AccountMeter(momentAt(startMs), [], [])
    const rates = Array.from({ length: 600 }, (_, index) => ({ keyId: `key_${index}`, perMinute: 2 }))
    for (const round of [0, 1, 2])
      for (const rate of rates)
        expect(meter.admit(momentAt(startMs), plan, asked(1, rate.keyId), rate) === undefined).toBe(round < 2)
    expect(meter.signals(momentAt(startMs), plan)).toMatchObject({ rateRemaining: 10_000 - 1200 })
  })
})
