import { beforeEach, describe, expect, test } from 'vitest'
import { AccountMeter } from '../../../src/domain/account-meter.ts'
import { QuotaCalendar } from '../../../src/storage/ledger/quota-calendar.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const decemberMs = Date.UTC(2026, 11, 1)
const plan = { id: 'test', name: 'Test', requestsPerMinute: 2, requestsPerMonth: 10, premium: false }
const one = { keyId: 'key_1', units: 1 }

let time: { wallMs: number; monotonicMs: number; sleptMs: number }
let calendar: QuotaCalendar

/** Half an hour before December. */
beforeEach(() => {
  time = { wallMs: decemberMs - hourMs / 2, monotonicMs: 7_000, sleptMs: 0 }
  const clock = { nowMs: () => time.wallMs, monotonicMs: () => time.monotonicMs, after: () => ({ cancel() {} }) }
  calendar = new QuotaCalendar(clock, () => time.monotonicMs + time.sleptMs)
})

function pass(ms: number): void {
  for (let leftMs = ms; leftMs > 0; leftMs -= minuteMs) {
    time.wallMs += Math.min(leftMs, minuteMs)
    time.monotonicMs += Math.min(leftMs, minuteMs)
    calendar.now()
  }
}

const month = (): string => calendar.now().period.id

describe('the month that is charged', () => {
  test('it changes when the wall clock and the monotonic clock agree', () => {
    pass(hourMs / 2 - 1)
    expect(month()).toBe('2026-11')
    pass(1)
    expect(month()).toBe('2026-12')
  })

  test('a wall clock set an hour forward does not change it early or late', () => {
    time.wallMs += hourMs
    expect(month()).toBe('2026-11')
    pass(hourMs / 2 - 1)
    expect(month()).toBe('2026-11')
    pass(1)
    expect(month()).toBe('2026-12')
  })

  test('a wall clock set an hour back does not change it back', () => {
    pass(hourMs)
    time.wallMs -= hourMs
    expect(month()).toBe('2026-12')
    pass(2 * hourMs)
    expect(month()).toBe('2026-12')
  })

  test('a step that is undone within the hour has no effect', () => {
    time.wallMs += 40 * 24 * hourMs
    pass(20 * minuteMs)
    time.wallMs -= 40 * 24 * hourMs
    pass(9 * minuteMs)
    expect(month()).toBe('2026-11')
  })

  test('after an hour it follows a wall clock that was set, in either direction', () => {
    for (const [stepMs, expected] of [
      [40 * 24 * hourMs, '2027-01'],
      [-40 * 24 * hourMs, '2026-12'],
    ] as const) {
      time.wallMs += stepMs
      pass(hourMs - minuteMs)
      expect(month()).not.toBe(expected)
      pass(2 * minuteMs)
      expect(month()).toBe(expected)
    }
  })

  test('it follows immediately after the machine slept, when the monotonic clock was stopped', () => {
    time.wallMs += 8 * hourMs
    time.sleptMs += 8 * hourMs
    calendar.now()
    expect(month()).toBe('2026-12')
  })
})

describe('the counters of an account', () => {
  test.each([hourMs, -hourMs])('the minute is kept when the wall clock is set by %i ms', (stepMs) => {
    const meter = new AccountMeter(calendar.now(), [], [])
    expect([meter.admit(calendar.now(), plan, one), meter.admit(calendar.now(), plan, one)]).toEqual([
      undefined,
      undefined,
    ])
    time.wallMs += stepMs
    pass(59_000)
    expect(meter.admit(calendar.now(), plan, one)).toMatchObject({ reason: 'minute', retryAfterSeconds: 1 })
    expect(meter.signals(calendar.now(), plan).rateReset).toBe(Math.ceil((time.wallMs + 1000) / 1000))
    pass(1_000)
    expect(meter.admit(calendar.now(), plan, one)).toBeUndefined()
  })

  test('the month’s counter continues after a wrong month is corrected', () => {
    const meter = new AccountMeter(calendar.now(), [], [{ periodId: '2026-11', used: 9 }])
    meter.admit(calendar.now(), plan, one)
    time.wallMs += 10 * 24 * hourMs
    pass(hourMs + minuteMs)
    expect(meter.admit(calendar.now(), plan, one)).toBeUndefined()
    expect(meter.periodId).toBe('2026-12')
    // The request admitted in November ends in December.
    meter.settle('2026-11', 1, 1)
    time.wallMs -= 10 * 24 * hourMs + 2 * hourMs
    pass(hourMs + minuteMs)
    expect(meter.covers(calendar.now().period)).toBe(true)
    expect(meter.admit(calendar.now(), plan, one)).toMatchObject({ reason: 'month' })
    expect(meter.signals(calendar.now(), plan).quotaUsed).toBe(10)
  })
})
