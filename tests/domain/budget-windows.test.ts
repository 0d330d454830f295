import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bucketsAt, resetsAtMs, rollingWindows } from '../../src/domain/budget-windows.ts'
import { budgetWindows } from '../../src/domain/budgets.ts'

const dayMs = 86_400_000
/** From 2001 to 2100. */
const times = fc.integer({ min: 978_307_200_000, max: 4_102_444_800_000 })
const windows = fc.constantFrom(...budgetWindows)

describe('a fixed window', () => {
  test('begins and ends in UTC, whatever the month, the year, and daylight saving time', () => {
    fc.assert(
      fc.property(windows, times, (window, nowMs) => {
        const kind = { window, rolling: false }
        const { currentMs, firstMs } = bucketsAt(kind, nowMs)
        const endMs = resetsAtMs(kind, { oldestMs: null }, nowMs)
        expect(firstMs).toBe(currentMs)
        expect(currentMs).toBeLessThanOrEqual(nowMs)
        expect(endMs).toBeGreaterThan(nowMs)
        // All times in it have the same bucket, and the next moment has another one.
        expect(bucketsAt(kind, endMs - 1).currentMs).toBe(currentMs)
        expect(bucketsAt(kind, endMs).currentMs).toBe(endMs)
        const start = new Date(currentMs)
        if (window !== '5h') expect(currentMs % dayMs).toBe(0)
        if (window === 'week') expect(start.getUTCDay()).toBe(1)
        if (window === 'month') expect(start.getUTCDate()).toBe(1)
      }),
    )
  })

  test.each([
    ['month', '2024-02-29T23:59:59.999Z', '2024-02-01', '2024-03-01'],
    ['month', '2026-12-31T23:59:59.999Z', '2026-12-01', '2027-01-01'],
    ['week', '2026-11-29T23:59:59.999Z', '2026-11-23', '2026-11-30'],
    ['day', '2026-03-29T01:30:00.000Z', '2026-03-29', '2026-03-30'],
  ] as const)('a %s at %s is that from %s to %s', (window, at, from, to) => {
    const nowMs = Date.parse(at)
    expect(bucketsAt({ window, rolling: false }, nowMs).currentMs).toBe(Date.parse(from))
    expect(resetsAtMs({ window, rolling: false }, { oldestMs: null }, nowMs)).toBe(Date.parse(to))
  })
})

describe('a sliding window', () => {
  test('counts what was spent for at least its length, and for at most one bucket more', () => {
    fc.assert(
      fc.property(windows, times, fc.double({ min: 0, max: 1.2, noNaN: true }), (window, spentMs, share) => {
        const kind = { window, rolling: true }
        const { lengthMs, bucketMs } = rollingWindows[window]
        const bucket = bucketsAt(kind, spentMs).currentMs
        const laterMs = spentMs + Math.floor(share * lengthMs)
        const isCounted = bucket >= bucketsAt(kind, laterMs).firstMs
        if (laterMs - spentMs <= lengthMs) expect(isCounted).toBe(true)
        if (laterMs - spentMs >= lengthMs + bucketMs) expect(isCounted).toBe(false)
      }),
    )
  })

  test('says when it first leaves something behind', () => {
    fc.assert(
      fc.property(windows, times, (window, nowMs) => {
        const kind = { window, rolling: true }
        const { currentMs: oldestMs } = bucketsAt(kind, nowMs)
        const resetMs = resetsAtMs(kind, { oldestMs }, nowMs)
        expect(bucketsAt(kind, resetMs - 1).firstMs).toBeLessThanOrEqual(oldestMs)
        expect(bucketsAt(kind, resetMs).firstMs).toBeGreaterThan(oldestMs)
      }),
    )
  })
})
