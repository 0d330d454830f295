import { describe, expect, test } from 'vitest'
import {
  addCosts,
  costRecord,
  describeCost,
  describeSavings,
  priceBook,
  type RequestCost,
  unknownCost,
  usageCostUsd,
} from '../../src/domain/request-cost.ts'

const usage = { inputTokens: 1_000_000, outputTokens: 100_000, cachedTokens: 400_000 } as const
const price = { input: 3, output: 15 }
const one: RequestCost = { amount: 5n, saved: 2n, isEstimated: false, prices: '2026-11-25' }

describe('the cost of several calls', () => {
  test('is their exact sum, estimated if one of them is', () => {
    expect(addCosts(one, { amount: 10n ** 20n, saved: -3n, isEstimated: true })).toEqual({
      amount: 10n ** 20n + 5n,
      saved: -1n,
      isEstimated: true,
      prices: '2026-11-25',
    })
  })

  test('is unknown if one of them is, and so is what caching saved', () => {
    expect(addCosts(one, unknownCost)).toBe(unknownCost)
    expect(addCosts(unknownCost, one)).toBe(unknownCost)
    expect(addCosts(one, { ...one, saved: undefined })).toMatchObject({ amount: 10n, saved: undefined })
  })
})

test('a recorded cost says what it is, how certain it is, and what caching changed', () => {
  const record = costRecord({ amount: 31_250_000_000n, saved: 2_000_000_000n, isEstimated: true })
  expect(record).toEqual({ usd: '0.03125', savedUsd: '0.002', estimated: true })
  expect(describeCost(record)).toBe('0.0313 USD (estimated)')
  expect(describeSavings(record)).toBe('caching saved 0.0020 USD')
  expect(describeSavings({ usd: '1', savedUsd: '-0.5' })).toBe(
    'writing to the cache cost 0.5000 USD more than it saved',
  )
  expect(describeSavings({ usd: '1', savedUsd: '0' })).toBeUndefined()
  expect(describeSavings({ usd: '1' })).toBeUndefined()
})

test('assumed usage charges cached tokens at their own price or, without one, at the input price', () => {
  expect(usageCostUsd(price, usage)).toBeCloseTo(4.5)
  expect(usageCostUsd({ ...price, cachedInput: 0.5 }, usage)).toBeCloseTo(0.6 * 3 + 0.4 * 0.5 + 1.5)
  expect(usageCostUsd(price, { inputTokens: 10, outputTokens: 0, cachedTokens: 99 })).toBeCloseTo(0.00003)
})

test("an account's own upstream is priced by its model", () => {
  const book = priceBook(
    [{ id: 'alpha', facts: { usdPerMillion: price } }],
    [{ id: 'ups_1', model: 'm' }],
    new Map([['m', { usdPerMillion: { input: 1, output: 2 } }]]),
  )
  expect([book('alpha'), book('ups_1'), book('gone')]).toEqual([price, { input: 1, output: 2 }, undefined])
})
