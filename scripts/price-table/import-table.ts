import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type ConditionalPrice, findProvider, type MatchLogic, type ModelPrice } from '@pydantic/genai-prices'
import { microdollars } from '../../src/domain/model-price.ts'
import type { TokenRates } from '../../src/domain/token-price.ts'
import type { ListedModel, ListedPrice, NamePattern, PriceTable } from '../../src/providers/prices/published-prices.ts'
import { vendors } from '../../src/providers/registry.ts'

/** Our names of the package's prices per million tokens. Others, such as prices per page, cannot be computed from usage. */
const rateNames: Readonly<Record<string, keyof TokenRates>> = {
  input_mtok: 'input',
  output_mtok: 'output',
  cache_read_mtok: 'cacheRead',
  cache_write_mtok: 'cacheWrite',
  cache_write_1h_mtok: 'cacheWrite1h',
  input_audio_mtok: 'audioInput',
  cache_audio_read_mtok: 'audioCacheRead',
  output_audio_mtok: 'audioOutput',
  input_image_mtok: 'imageInput',
  output_image_mtok: 'imageOutput',
}
/** Outside of working days these cost the usual price, which the package does not say. */
const weekdayPeaks = /^deepseek-v4/
const marks = { equals: '=', starts_with: '^', ends_with: '$', contains: '*', regex: '~' } as const

/** The package's prices in our form, without a date. Models that are not priced by tokens are left out. */
export function importedTable(): Omit<PriceTable, 'version'> {
  const packageFile = createRequire(import.meta.url).resolve('@pydantic/genai-prices')
  const { version } = JSON.parse(readFileSync(new URL('../package.json', `file://${packageFile}`), 'utf8')) as {
    version: string
  }
  const ids = new Set(Object.values(vendors).flatMap((vendor) => ('priceLists' in vendor ? vendor.priceLists : [])))
  const providers = Object.fromEntries([...ids].map((id) => [id, listedModels(id)]))
  return { source: `@pydantic/genai-prices ${version}`, providers }
}

function listedModels(providerId: string): ListedModel[] {
  const provider = findProvider({ providerId })
  if (provider === undefined) throw new Error(`the package has no provider ${providerId}`)
  return provider.models.flatMap(({ id, match, prices }) => {
    const given: readonly ConditionalPrice[] = Array.isArray(prices) ? prices : [{ prices }]
    const listed = given
      .map((price) => listedPrice(price, weekdayPeaks.test(id)))
      .filter((price) => price !== undefined)
    return listed.length === 0 ? [] : [{ id, match: patternsOf(match), prices: listed }]
  })
}

function listedPrice({ constraint, prices }: ConditionalPrice, weekdays: boolean): ListedPrice | undefined {
  const rates = ratesAt(prices, 0)
  if (rates === undefined) return undefined
  const above = thresholds(prices).map((start) => ({ above: start, rates: ratesAt(prices, start + 1)! }))
  const search = prices['web_searches_kcount']
  return {
    ...(constraint?.type === 'start_date' ? { from: constraint.start_date } : {}),
    ...(constraint?.type === 'time_of_date'
      ? { minutes: [minuteOf(constraint.start_time), minuteOf(constraint.end_time)], ...(weekdays ? { weekdays } : {}) }
      : {}),
    rates,
    ...(above.length === 0 ? {} : { longContext: above }),
    // Dollars per thousand: picodollars for one.
    ...(typeof search === 'number' ? { webSearch: Math.ceil(Number((search * 1e9).toFixed(3))) } : {}),
  }
}

function thresholds(prices: ModelPrice): number[] {
  const starts = Object.values(prices).flatMap((price) =>
    typeof price === 'object' ? price.tiers.map(({ start }) => start) : [],
  )
  return [...new Set(starts)].sort((a, b) => a - b)
}

/** The rates for so many input tokens; undefined if input and output have none. */
function ratesAt(prices: ModelPrice, inputTokens: number): TokenRates | undefined {
  const rates: Partial<Record<keyof TokenRates, number>> = {}
  for (const [given, name] of Object.entries(rateNames)) {
    const price = prices[given]
    if (price === undefined) continue
    const dollars =
      typeof price === 'number'
        ? price
        : (price.tiers.findLast(({ start }) => inputTokens > start)?.price ?? price.base)
    rates[name] = microdollars(dollars)
  }
  const { input, output } = rates
  if (input === undefined && output === undefined) return undefined
  return { ...rates, input: input ?? 0, output: output ?? 0 }
}

/** Alternatives; each is one pattern, or several that must all match. */
function patternsOf(match: MatchLogic): NamePattern[] {
  if ('or' in match) return match.or.flatMap(patternsOf)
  if ('and' in match) return [match.and.flatMap(patternsOf).flat()]
  const [[kind, text] = []] = Object.entries(match) as [keyof typeof marks, string][]
  if (kind === undefined || text === undefined) throw new Error('a model matches nothing')
  // Names are compared in lowercase.
  return [marks[kind] + (kind === 'regex' ? text : text.toLowerCase())]
}

/** `01:30:00Z` as minutes of the day. */
function minuteOf(time: string): number {
  const [hour = NaN, minute = NaN] = time.split(':').map(Number)
  return hour * 60 + minute
}
