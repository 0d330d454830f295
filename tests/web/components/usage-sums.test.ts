import { describe, expect, test } from 'vitest'
import type { UsageGroup } from '../../../src/accounts/ports.ts'
import type { UsageSignals } from '../../../src/domain/account-meter.ts'
import { barsByDay, costBy, costOf, countBy, projectMonth } from '../../../src/web/components/usage-sums.ts'
import { writeCsv } from '../../../src/web/http/download.ts'

const dayMs = 86_400_000
const startMs = Date.UTC(2026, 10, 1)
const usage = (quotaUsed: number): UsageSignals => ({
  rateLimit: 20,
  rateRemaining: 20,
  rateReset: 0,
  quotaLimit: 300,
  quotaUsed,
  quotaRemaining: 300 - quotaUsed,
  quotaReset: Date.UTC(2026, 11, 1) / 1000,
})
const group = (day: string, requests: number, more: Partial<UsageGroup> = {}): UsageGroup => ({
  day,
  profile: 'a',
  keyId: 'key_1',
  backend: 'alpha',
  errorCode: null,
  requests,
  charged: requests,
  inputTokens: 0,
  outputTokens: 0,
  estimated: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  cost: { usd: '0', savedUsd: '0', priced: 0 },
  ...more,
})

describe("the month's projection", () => {
  test("the pace so far predicts the month's total and the day on which the quota runs out", () => {
    expect(projectMonth(usage(50), startMs, startMs + 10 * dayMs)).toEqual({ units: 150, usedUpAtMs: undefined })
    expect(projectMonth(usage(150), startMs, startMs + 10 * dayMs)).toEqual({
      units: 450,
      usedUpAtMs: startMs + 20 * dayMs,
    })
  })

  test('there is no projection in the first half day or without usage', () => {
    expect(projectMonth(usage(50), startMs, startMs + dayMs / 2 - 1)).toBeUndefined()
    expect(projectMonth(usage(0), startMs, startMs + 10 * dayMs)).toBeUndefined()
  })
})

test('every day has a bar, including days without requests', () => {
  const groups = [group('2026-11-01', 2), group('2026-11-01', 1, { errorCode: 'x' }), group('2026-11-03', 4)]
  expect(barsByDay(groups, startMs, startMs + 3 * dayMs)).toEqual([
    { day: '2026-11-01', answered: 2, failed: 1 },
    { day: '2026-11-02', answered: 0, failed: 0 },
    { day: '2026-11-03', answered: 4, failed: 0 },
  ])
})

test('shares are sorted by size, and unnamed ones are omitted', () => {
  const groups = [group('d', 1, { backend: null }), group('d', 2), group('d', 3, { backend: 'beta' }), group('e', 2)]
  expect(countBy(groups, ({ backend }) => backend)).toEqual([
    { name: 'alpha', count: 4 },
    { name: 'beta', count: 3 },
  ])
})

test('a CSV cell is quoted if necessary and never starts a formula', () => {
  expect(
    writeCsv(
      ['a', 'b'],
      [
        ['x,"y"', null],
        ['=1+1', 2],
        ['-5', 'l\nm'],
        ['＝1', '＠a'],
      ],
    ),
  ).toBe('a,b\r\n"x,""y""",\r\n\'=1+1,2\r\n\'-5,"l\nm"\r\n\'＝1,\'＠a\r\n')
})

describe('costs of groups', () => {
  const cost = (usd: string, priced: number, savedUsd = '0') => ({ cost: { usd, savedUsd, priced } })
  const groups = [
    group('d', 3, { backend: 'beta', ...cost('0.1', 3, '0.000000000001') }),
    group('d', 2, cost('0.2', 1, '-0.5')),
    group('e', 4, { backend: 'beta', ...cost('0.7', 4) }),
    group('e', 9, { backend: 'unpriced', ...cost('0', 0) }),
  ]

  test('costs are added exactly, and requests without a known cost are counted', () => {
    expect(costOf(groups)).toEqual({ amount: 10n ** 12n, saved: 1n - 5n * 10n ** 11n, unknown: 10 })
  })

  test('a cost is unknown if none of its requests has a known one', () => {
    expect(costOf(groups.slice(3))).toBeUndefined()
    expect(costOf([])).toBeUndefined()
  })

  test('names are listed by what they cost, those of unknown cost last', () => {
    expect(costBy(groups, ({ backend }) => backend).map(({ name, count }) => [name, count])).toEqual([
      ['beta', 7],
      ['alpha', 2],
      ['unpriced', 9],
    ])
  })
})
