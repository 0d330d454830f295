import { readFileSync } from 'node:fs'
import { calcPrice } from '@pydantic/genai-prices'
import { expect, test } from 'vitest'
import { importedTable } from '../../../scripts/price-table/import-table.ts'
import { costOf, type TokenPrice } from '../../../src/domain/token-price.ts'
import { publishedPriceOf, publishedPrices } from '../../../src/providers/prices/published-prices.ts'
import type { VendorId } from '../../../src/providers/registry.ts'

const now = Date.parse('2026-11-25T12:00:00Z')
/** Vendors whose whole price list comes from one provider of the package. */
const listed: Readonly<Partial<Record<VendorId, string>>> = {
  openai: 'openai',
  anthropic: 'anthropic',
  groq: 'groq',
  together: 'together',
  mistral: 'mistral',
  xai: 'x-ai',
  gemini: 'google',
  bedrock: 'aws',
  openrouter: 'openrouter',
}
const units = {
  input: 'input_tokens',
  output: 'output_tokens',
  cacheRead: 'cache_read_tokens',
  cacheWrite: 'cache_write_tokens',
} as const

test('the table is the one that the script writes from the installed package', () => {
  const { version: _day, ...table } = publishedPrices()
  expect(table).toEqual(importedTable())
  expect(readFileSync('package.json', 'utf8')).toContain(`"${table.source.replace(' ', '": "')}"`)
})

test('every model that the table names has the price that the package itself computes', () => {
  let compared = 0
  for (const [vendor, providerId] of Object.entries(listed) as [VendorId, string][]) {
    for (const { match } of publishedPrices().providers[providerId]!) {
      const name = match
        .find((pattern): pattern is string => typeof pattern === 'string' && pattern.startsWith('='))
        ?.slice(1)
      if (name === undefined) continue
      for (const inputTokens of [1_000, 250_000, 300_000]) {
        const expected = calcPrice({ input_tokens: inputTokens, output_tokens: 1_000 }, name, {
          providerId,
          timestamp: new Date(now),
        })
        const price = publishedPriceOf({ vendor, model: name })?.(now)
        const usage = { inputTokens, outputTokens: 1_000, cachedTokens: 0, reasoningTokens: 0 }
        const cost = costOf(usage, price)
        expect(Number(cost) / 1e12, `${providerId} ${name} ${inputTokens}`).toBeCloseTo(expected!.total_price, 8)
        compared++
      }
    }
  }
  expect(compared).toBeGreaterThan(2_000)
})

test('reads and writes of a cache have their own price', () => {
  const price = priceOf('anthropic', 'claude-opus-5-5')
  const rates: Record<string, number> = { ...price.rates }
  for (const [name, unit] of Object.entries(units)) {
    const input = name.startsWith('cache') ? { input_tokens: 1_000_000 } : {}
    const expected = calcPrice({ ...input, [unit]: 1_000_000 }, 'claude-opus-5-5', { providerId: 'anthropic' })
    expect(rates[name]! / 1e6).toBeCloseTo(expected!.total_price, 9)
  }
  expect(rates['cacheWrite1h']).toBe(8_000_000)
})

test('a price counts from its first day on', () => {
  const day = (text: string) => priceOf('openai', 'gpt-5.6-sol', Date.parse(text)).rates.input
  expect(day('2026-08-20T23:59:59Z')).toBe(5_000_000)
  expect(day('2026-08-21T00:00:00Z')).toBe(4_000_000)
})

test("DeepSeek's peak price counts in its hours on working days", () => {
  const at = (text: string) => priceOf('deepseek', 'deepseek-v4-pro', Date.parse(text)).rates.input
  expect(at('2026-11-25T02:00:00Z')).toBe(1_320_000)
  expect(at('2026-11-25T05:00:00Z')).toBe(660_000)
  expect(at('2026-11-28T02:00:00Z')).toBe(660_000)
})

test('service tiers and regions that cost more are known where the vendor publishes them', () => {
  const usage = { inputTokens: 1_000_000, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0 }
  const cost = (vendor: VendorId, model: string, more: object, region?: string) => {
    const price = publishedPriceOf({ vendor, model, region })!(now)
    const cents = costOf({ ...usage, inputTokens: 100_000, ...more }, price)
    return cents === undefined ? undefined : Number(cents / 10_000_000n) / 1e5
  }
  expect(cost('openai', 'gpt-5.5', { serviceTier: 'priority' })).toBe(1.25)
  expect(cost('openai', 'gpt-5.5', { serviceTier: 'flex' })).toBe(0.25)
  expect(cost('openai', 'gpt-5-mini', { serviceTier: 'priority' })).toBe(0.045)
  expect(cost('openai', 'gpt-5.6-sol', { serviceTier: 'priority' })).toBe(0.8)
  expect(cost('openai', 'gpt-5-nano', { serviceTier: 'priority' })).toBeUndefined()
  expect(cost('openai', 'gpt-5.4', {}, 'eu')).toBe(0.275)
  expect(cost('openai', 'gpt-5', {}, 'eu')).toBe(0.125)
  expect(cost('anthropic', 'claude-opus-5', { region: 'us' })).toBe(0.55)
  expect(cost('anthropic', 'claude-opus-5', { serviceTier: 'priority' })).toBeUndefined()
  expect(cost('bedrock', 'us.anthropic.claude-opus-5-5', {})).toBe(0.44)
})

test('an unknown model has no price', () => {
  expect(publishedPriceOf({ vendor: 'openai', model: 'gpt-99' })).toBeUndefined()
  expect(publishedPriceOf({ vendor: 'custom', model: 'gpt-5' })).toBeUndefined()
})

function priceOf(vendor: VendorId, model: string, atMs = now): TokenPrice {
  return publishedPriceOf({ vendor, model })!(atMs)
}
