import { constantFrom, integer, property, record, assert } from 'fast-check'
import { expect, test } from 'vitest'
import type { Usage } from '../../src/domain/conversation.ts'
import {
  cacheSavings,
  costOf,
  scaleRates,
  tokenParts,
  type TokenPrice,
  worstCost,
} from '../../src/domain/token-price.ts'

const base: Usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0, source: 'counted' }

/** Claude's usual proportions, in microdollars per million. */
const claude: TokenPrice = {
  rates: { input: 5_000_000, output: 25_000_000, cacheRead: 500_000, cacheWrite: 6_250_000, cacheWrite1h: 10_000_000 },
  tiers: { batch: 500 },
  regions: { us: 1_100 },
  webSearch: 10_000_000_000,
}

const count = integer({ min: 0, max: 200_000 })
const anyUsage = record({
  inputTokens: count,
  outputTokens: count,
  cachedTokens: count,
  reasoningTokens: count,
  cacheWriteTokens: count,
  cacheWrite1hTokens: count,
  audioInputTokens: count,
  cachedAudioTokens: count,
  audioOutputTokens: count,
  imageInputTokens: count,
  imageOutputTokens: count,
})

test('each token of a usage is in exactly one part, whatever a provider counted', () => {
  assert(
    property(anyUsage, (usage) => {
      const { output, audioOutput, imageOutput, ...input } = tokenParts(usage)
      const all = [...Object.values(input), output, audioOutput, imageOutput]
      expect(all.every((tokens) => tokens >= 0)).toBe(true)
      expect(Object.values(input).reduce((sum, tokens) => sum + tokens, 0)).toBe(usage.inputTokens)
      expect(output + audioOutput + imageOutput).toBe(usage.outputTokens)
    }),
    { numRuns: 2_000 },
  )
})

test('the example of a cached turn costs what the invoice says', () => {
  // 100,000 read, 2,000 written for 5 minutes, 500 for an hour, 300 new; 700 out, of which 400 are reasoning.
  const usage = {
    ...base,
    inputTokens: 102_800,
    cachedTokens: 100_000,
    cacheWriteTokens: 2_500,
    cacheWrite1hTokens: 500,
    outputTokens: 700,
    reasoningTokens: 400,
  }
  // 0.05 + 0.0125 + 0.005 + 0.0015 + 0.0175 dollars
  expect(costOf(usage, claude)).toBe(86_500_000_000n)
  expect(costOf({ ...usage, webSearches: 3 }, claude)).toBe(86_500_000_000n + 30_000_000_000n)
  expect(costOf({ ...usage, serviceTier: 'batch' }, claude)).toBe(43_250_000_000n)
  expect(costOf({ ...usage, region: 'us' }, claude)).toBe(95_150_000_000n)
  expect(costOf({ ...usage, region: 'global', serviceTier: 'standard' }, claude)).toBe(86_500_000_000n)
  // Without a cache: 102,800 × 5 + 700 × 25 microdollars = 0.5315 dollars.
  expect(cacheSavings(usage, claude)).toBe(531_500_000_000n - 86_500_000_000n)
})

test('an unknown price, usage, tier, region, or search price is unknown, never 0', () => {
  const usage = { ...base, inputTokens: 10, outputTokens: 10 }
  expect(costOf(undefined, claude)).toBeUndefined()
  expect(costOf(usage, undefined)).toBeUndefined()
  expect(costOf({ ...usage, serviceTier: 'priority' }, claude)).toBeUndefined()
  expect(costOf({ ...usage, region: 'moon' }, claude)).toBeUndefined()
  expect(costOf({ ...usage, webSearches: 1 }, { rates: claude.rates })).toBeUndefined()
  expect(costOf({ ...usage, region: 'moon' }, { rates: claude.rates })).toBeDefined()
})

test('the cost that the provider states wins over the price, even without one', () => {
  const usage = { ...base, inputTokens: 10, statedCost: '123456' }
  expect(costOf(usage, claude)).toBe(123_456n)
  expect(costOf(usage, undefined)).toBe(123_456n)
  expect(costOf({ ...usage, statedCost: '0' }, claude)).toBe(0n)
})

test('above the threshold of long context, all tokens cost its rates', () => {
  const price: TokenPrice = {
    rates: { input: 2, output: 10 },
    longContext: [
      { above: 100, rates: { input: 3, output: 12 } },
      { above: 200, rates: { input: 4, output: 15 } },
    ],
  }
  const cost = (inputTokens: number) => costOf({ ...base, inputTokens, outputTokens: 1 }, price)
  expect(cost(100)).toBe(210n)
  expect(cost(101)).toBe(101n * 3n + 12n)
  expect(cost(201)).toBe(201n * 4n + 15n)
})

test('no usage within the limits of a call costs more than its worst case', () => {
  const price = { ...claude, rates: { ...claude.rates, audioInput: 40_000_000, audioOutput: 80_000_000 } }
  const tiers = record({ serviceTier: constantFrom('batch', 'standard'), region: constantFrom('us', 'global') })
  assert(
    property(anyUsage, tiers, (usage, { serviceTier, region }) => {
      const { inputTokens, outputTokens } = usage
      const worst = worstCost(price, { inputTokens, outputTokens, tier: serviceTier })!
      expect(costOf({ ...usage, serviceTier, region }, price)! <= worst).toBe(true)
    }),
    { numRuns: 2_000 },
  )
})

test('sums stay exact where a double is not', () => {
  const price = { rates: { input: 999_999_999, output: 0 } }
  expect(costOf({ ...base, inputTokens: 99_999_999 }, price)).toBe(99_999_999n * 999_999_999n)
})

test('scaled rates are rounded up to a whole microdollar', () => {
  expect(scaleRates({ input: 3, output: 10 }, 500)).toEqual({ input: 2, output: 5 })
})
