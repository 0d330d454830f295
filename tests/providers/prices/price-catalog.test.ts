import { expect, test } from 'vitest'
import { operatorsPrice } from '../../../src/domain/model-price.ts'
import { openPriceCatalog } from '../../../src/providers/prices/price-catalog.ts'
import { publishedPrices } from '../../../src/providers/prices/published-prices.ts'

const now = Date.parse('2026-11-25T12:00:00Z')
const opus = { vendor: 'anthropic', model: 'claude-opus-5' } as const
const unknown = { vendor: 'custom', model: 'house' } as const

test("without the operator's prices, the version is the day of the published table", () => {
  expect(openPriceCatalog([]).version).toBe(publishedPrices().version)
  expect(openPriceCatalog([['backend a', undefined]]).version).toBe(publishedPrices().version)
})

test("the operator's prices change the version, each in its own way", () => {
  const versions = [1, 2].map((input) => openPriceCatalog([['backend a', { input, output: 3 }]]).version)
  expect(new Set(versions).size).toBe(2)
  for (const version of versions) expect(version).toMatch(/^\d{4}-\d\d-\d\d\+[0-9a-f]{8}$/)
})

test('a price that the operator states wins; what it does not say keeps its published proportion', () => {
  const catalog = openPriceCatalog([])
  const { rates, tiers, longContext } = catalog.priceOf(opus, { input: 4, output: 20 })!.at(now)
  expect(rates).toEqual({
    input: 4_000_000,
    output: 20_000_000,
    cacheRead: 400_000,
    cacheWrite: 5_000_000,
    cacheWrite1h: 8_000_000,
  })
  expect(tiers).toEqual({ batch: 500 })
  expect(longContext).toBeUndefined()
  expect(catalog.priceOf(opus, { input: 4, output: 20, cachedInput: 0, cacheWrite: 4 })!.at(now).rates).toEqual({
    input: 4_000_000,
    output: 20_000_000,
    cacheRead: 0,
    cacheWrite: 4_000_000,
  })
})

test('a model without a published price has the stated one, and otherwise none', () => {
  const catalog = openPriceCatalog([])
  expect(catalog.priceOf(unknown)).toBeUndefined()
  const price = catalog.priceOf(unknown, {
    input: 0.1,
    output: 0.3,
    longContext: { above: 200_000, input: 0.2, output: 0.6 },
    serviceTiers: { flex: 0.35 },
  })!
  expect(price.at(now)).toEqual({
    rates: { input: 100_000, output: 300_000 },
    longContext: [{ above: 200_000, rates: { input: 200_000, output: 600_000 } }],
    tiers: { flex: 350 },
  })
})

test('published prices of long input, regions, and cached audio keep their ratio to what the operator states', () => {
  const published = { rates: { input: 100, output: 400, cacheRead: 10, audioInput: 800, audioCacheRead: 20 } }
  const long = { input: 200, output: 600, cacheRead: 20 }
  const price = operatorsPrice(
    { input: 0.000_05, output: 0.000_1, cachedInput: 0.000_02 },
    { ...published, longContext: [{ above: 200_000, rates: long }], regions: { us: 1_100 } },
  )
  expect(price.rates).toEqual({ input: 50, output: 100, cacheRead: 20, audioInput: 400, audioCacheRead: 10 })
  expect(price.longContext).toEqual([
    { above: 200_000, rates: { input: 100, output: 150, cacheRead: 40, audioInput: 800, audioCacheRead: 20 } },
  ])
  expect(price.regions).toEqual({ us: 1_100 })
  const free = operatorsPrice({ input: 0, output: 0 }, { ...published, longContext: [{ above: 1, rates: long }] })
  expect(Object.values(free.longContext![0]!.rates)).toEqual([0, 0, 0, 0, 0])
})

test('a long request at a stated price costs as much more as at the published one', () => {
  const sonnet = { vendor: 'anthropic', model: 'claude-sonnet-4-5' } as const
  const catalog = openPriceCatalog([])
  const usual = catalog.priceOf(sonnet)!.at(now)
  const stated = catalog.priceOf(sonnet, { input: 2.7, output: 13.5 })!.at(now)
  expect(usual.longContext?.[0]!.rates.input).toBeGreaterThan(usual.rates.input)
  expect(stated.longContext?.[0]!.rates.input).toBe(0.9 * usual.longContext![0]!.rates.input)
  expect(stated.regions).toEqual(usual.regions)
})
