import { describe, expect, test } from 'vitest'
import type { FusionRecord } from '../../src/domain/fusion-record.ts'
import { priceBook, requestCostUsd, usageCostUsd, writeUsd } from '../../src/domain/request-cost.ts'

const usage = { inputTokens: 1_000_000, outputTokens: 100_000, cachedTokens: 400_000, reasoningTokens: 0 } as const
const counted = { ...usage, source: 'counted' } as const
const price = { input: 3, output: 15 }
const priceOf = (id: string) => (id === 'alpha' ? price : undefined)
const asked = (...backends: string[]) => backends.map((backend) => ({ backend, outcome: 'answered', ms: 1 }) as const)
const fusion = (costUsd?: number) => (costUsd === undefined ? {} : { costUsd }) as FusionRecord

describe('the cost of a request', () => {
  test('charges cached tokens at their own price or, without one, at the input price', () => {
    expect(usageCostUsd(price, usage)).toBeCloseTo(4.5)
    expect(usageCostUsd({ ...price, cachedInput: 0.5 }, usage)).toBeCloseTo(0.6 * 3 + 0.4 * 0.5 + 1.5)
    expect(usageCostUsd(price, { inputTokens: 10, outputTokens: 0, cachedTokens: 99 })).toBeCloseTo(0.00003)
  })

  test('uses the price of the backend that answered', () => {
    expect(requestCostUsd({ usage: counted, attempts: asked('beta', 'alpha') }, priceOf)).toBeCloseTo(4.5)
    expect(requestCostUsd({ usage: counted, attempts: asked('alpha', 'beta') }, priceOf)).toBeUndefined()
    expect(requestCostUsd({ attempts: asked('alpha') }, priceOf), 'no usage').toBeUndefined()
    expect(requestCostUsd({ usage: counted, attempts: [] }, priceOf)).toBeUndefined()
  })

  test('is the sum of the recorded fusions, if all their prices are known', () => {
    const attempts = asked('alpha')
    expect(requestCostUsd({ usage: counted, attempts, fusions: [fusion(0.2), fusion(0.1)] }, priceOf)).toBeCloseTo(0.3)
    expect(requestCostUsd({ usage: counted, attempts, fusions: [fusion(0.2), fusion()] }, priceOf)).toBeUndefined()
  })
})

test("an account's own upstream is priced by its model", () => {
  const book = priceBook(
    [{ id: 'alpha', facts: { usdPerMillion: price } }],
    [{ id: 'ups_1', model: 'm' }],
    new Map([['m', { usdPerMillion: { input: 1, output: 2 } }]]),
  )
  expect([book('alpha'), book('ups_1'), book('gone')]).toEqual([price, { input: 1, output: 2 }, undefined])
})

test('amounts are written with four decimals', () => {
  expect([0, 0.00001, 0.03125, 12].map(writeUsd)).toEqual([
    '0.0000 USD',
    'less than 0.0001 USD',
    '0.0313 USD',
    '12.0000 USD',
  ])
})
