import { readFileSync } from 'node:fs'
import { scaleRates, type TokenPrice, type TokenRates } from '../../domain/token-price.ts'
import { type Vendor, type VendorId, vendors } from '../registry.ts'
import type { Surcharges } from './surcharges.ts'

/** Published prices of models, by price list. `scripts/price-table.ts` writes them. */
export interface PriceTable {
  /** The day on which it was made, such as `2026-11-25`. */
  readonly version: string
  readonly source: string
  readonly providers: Readonly<Record<string, readonly ListedModel[]>>
}

export interface ListedModel {
  readonly id: string
  /** The alternatives that a model's name in lowercase can match. */
  readonly match: readonly NamePattern[]
  /** The last one that applies at a time counts. */
  readonly prices: readonly ListedPrice[]
}

/** `=name`, `^start`, `$end`, `*part`, or `~regular expression`; a list if all must match. */
export type NamePattern = string | readonly string[]

export interface ListedPrice extends Pick<TokenPrice, 'longContext' | 'webSearch'> {
  readonly rates: TokenRates
  /** The first day on which it applies, in UTC. */
  readonly from?: string
  /** The minutes of the day, in UTC, between which it applies. */
  readonly minutes?: readonly number[]
  /** Whether those minutes count on Monday to Friday only. */
  readonly weekdays?: boolean
}

/** A model at a vendor. */
export interface PricedModel {
  readonly vendor: VendorId
  readonly model: string
  /** Where the provider processes requests, in lowercase, if that is fixed. */
  readonly region?: string | undefined
}

const tableFile = 'price-table.json'
let table: PriceTable | undefined

/** The table of published prices, read on first use. */
export function publishedPrices(): PriceTable {
  table ??= JSON.parse(readFileSync(new URL(tableFile, import.meta.url), 'utf8')) as PriceTable
  return table
}

/** The published price of a model at any time; undefined if there is none (contract 42.4). */
export function publishedPriceOf(asked: PricedModel): ((atMs: number) => TokenPrice) | undefined {
  const { priceLists = [], surcharges }: Vendor = vendors[asked.vendor]
  const name = asked.model.toLowerCase()
  for (const list of priceLists) {
    const model = publishedPrices().providers[list]?.find(({ match }) =>
      match.some((pattern) => matches(pattern, name)),
    )
    if (model !== undefined) return priceOver(model.prices, factorsFor(asked, surcharges))
  }
  return undefined
}

interface Factors extends Pick<TokenPrice, 'tiers' | 'regions'> {
  readonly fixed: number
}

function factorsFor({ model, region }: PricedModel, { tiers = [], regions, fixedRegion }: Surcharges = {}): Factors {
  const name = model.toLowerCase()
  const known = tiers.filter(([models]) => models.test(name)).map(([, factors]) => factors)
  const isFixed = region !== undefined && region !== 'global' && fixedRegion?.[0].test(name) === true
  return {
    tiers: Object.assign({}, ...known) as Readonly<Record<string, number>>,
    ...(regions?.[0].test(name) === true ? { regions: regions[1] } : {}),
    fixed: isFixed ? fixedRegion[1] : 1_000,
  }
}

function priceOver(prices: readonly ListedPrice[], { fixed, ...factors }: Factors): (atMs: number) => TokenPrice {
  const all = prices.map(({ from, ...listed }) => ({
    fromMs: from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(`${from}T00:00:00Z`),
    listed,
    price: {
      rates: scaleRates(listed.rates, fixed),
      ...(listed.longContext === undefined
        ? {}
        : { longContext: listed.longContext.map(({ above, rates }) => ({ above, rates: scaleRates(rates, fixed) })) }),
      ...(listed.webSearch === undefined ? {} : { webSearch: listed.webSearch }),
      ...factors,
    },
  }))
  return (atMs) => (all.findLast(({ fromMs, listed }) => atMs >= fromMs && appliesAt(listed, atMs)) ?? all[0]!).price
}

/** Whether a price applies at this time of the day and the week. */
function appliesAt({ minutes, weekdays = false }: Pick<ListedPrice, 'minutes' | 'weekdays'>, atMs: number): boolean {
  if (minutes === undefined) return true
  const at = new Date(atMs)
  const minute = at.getUTCHours() * 60 + at.getUTCMinutes()
  const [start = 0, end = 0] = minutes
  const isWeekend = at.getUTCDay() % 6 === 0
  return !(weekdays && isWeekend) && minute >= start && minute < end
}

function matches(pattern: NamePattern, name: string): boolean {
  if (typeof pattern !== 'string') return pattern.every((each) => matches(each, name))
  const text = pattern.slice(1)
  switch (pattern[0]) {
    case '=':
      return name === text
    case '^':
      return name.startsWith(text)
    case '$':
      return name.endsWith(text)
    case '*':
      return name.includes(text)
    default:
      return new RegExp(text).test(name)
  }
}
