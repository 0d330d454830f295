import { describe, expect, test } from 'vitest'
import type { CostBasis, UsageGroup } from '../../../src/accounts/ports.ts'
import type { UsageSignals } from '../../../src/domain/account-meter.ts'
import { barsByDay, costOf, countBy, projectMonth } from '../../../src/web/components/usage-sums.ts'
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
const basis = (plain: Partial<CostBasis['plain']> = {}, fused: Partial<CostBasis['fused']> = {}): CostBasis => ({
  plain: { requests: 0, inputTokens: 0, outputTokens: 0, cachedTokens: 0, ...plain },
  fused: { requests: 0, priced: 0, usd: 0, ...fused },
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
  costBasis: basis(),
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
  const priceOf = (id: string) => (id === 'alpha' ? { input: 2, output: 10, cachedInput: 1 } : undefined)
  const million = { inputTokens: 1_000_000, outputTokens: 1_000_000, cachedTokens: 500_000 }

  test("a group's cost sums priced backends and fusions, and counts the requests without a price", () => {
    const groups = [
      group('2026-11-01', 3, { costBasis: basis({ requests: 3, ...million }) }),
      group('2026-11-01', 2, { backend: 'unpriced', costBasis: basis({ requests: 2, ...million }) }),
      group('2026-11-01', 4, { backend: null, costBasis: basis({}, { requests: 4, priced: 3, usd: 0.5 }) }),
    ]
    expect(costOf(groups, priceOf)).toEqual({ usd: 12, unpriced: 3 })
  })

  test("a group's cost is unknown if no price is known", () => {
    expect(
      costOf([group('2026-11-01', 1, { backend: 'b', costBasis: basis({ requests: 1 }) })], priceOf),
    ).toBeUndefined()
    expect(costOf([], priceOf)).toBeUndefined()
  })
})
