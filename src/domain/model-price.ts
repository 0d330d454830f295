import type { UsdPerMillion, UsdRates } from './model-facts.ts'
import type { TokenPrice, TokenRates } from './token-price.ts'

/** What a provider charges for a model, and which prices these are. */
export interface ModelPrice {
  /** Identifies the prices, so that a record can name them (contract 42.6). */
  readonly version: string
  /** The price of calls that start at this time. */
  at(timeMs: number): TokenPrice
}

/** Our name of a rate: the operator's name, if there is one, and what it follows if the operator did not state it. */
const rateNames = [
  ['cacheRead', 'cachedInput', 'input'],
  ['audioCacheRead', undefined, 'input'],
  ['cacheWrite', 'cacheWrite', 'input'],
  ['cacheWrite1h', 'cacheWrite1h', 'input'],
  ['audioInput', 'audioInput', 'input'],
  ['audioOutput', 'audioOutput', 'output'],
  ['imageInput', 'imageInput', 'input'],
  ['imageOutput', 'imageOutput', 'output'],
] as const satisfies readonly (readonly [keyof TokenRates, keyof UsdRates | undefined, 'input' | 'output'])[]

/**
 * The price that an operator stated. What it does not say has the published proportion to its own input or output price,
 * if there is a published price (contract 42.4).
 */
export function operatorsPrice(own: UsdPerMillion, published?: TokenPrice): TokenPrice {
  const { longContext, serviceTiers } = own
  const tiers =
    serviceTiers === undefined
      ? published?.tiers
      : Object.fromEntries(
          Object.entries(serviceTiers).map(([tier, factor]) => [tier, Math.ceil(factor * 1000 - 1e-6)]),
        )
  const rates = operatorsRates(own, published?.rates)
  const long =
    longContext === undefined
      ? published?.longContext?.map((one) => ({ ...one, rates: inProportion(rates, published.rates, one.rates) }))
      : [{ above: longContext.above, rates: operatorsRates(longContext, published?.rates) }]
  return {
    rates,
    ...(long === undefined ? {} : { longContext: long }),
    ...(tiers === undefined ? {} : { tiers }),
    ...(published?.regions === undefined ? {} : { regions: published.regions }),
    ...(published?.webSearch === undefined ? {} : { webSearch: published.webSearch }),
  }
}

function operatorsRates(own: UsdRates, published: TokenRates | undefined): TokenRates {
  const rates: { -readonly [Name in keyof TokenRates]: TokenRates[Name] } = {
    input: microdollars(own.input),
    output: microdollars(own.output),
  }
  for (const [name, ownName, base] of rateNames) {
    const stated = ownName === undefined ? undefined : own[ownName]
    const usual = published?.[name]
    if (stated !== undefined) rates[name] = microdollars(stated)
    // A stated price for all writes is also that for long ones.
    else if (name === 'cacheWrite1h' && own.cacheWrite !== undefined) continue
    else if (published !== undefined && usual !== undefined && published[base] > 0)
      rates[name] = scaled(rates[base], usual, published[base])
  }
  return rates
}

/** Rates that have the same ratio to `rates` as other published ones to the published rates. */
function inProportion(rates: TokenRates, published: TokenRates, others: TokenRates): TokenRates {
  const of = (name: keyof TokenRates, base: 'input' | 'output'): number | undefined => {
    const [rate, from, to] = [rates[name], published[name], others[name]]
    if (rate === undefined) return undefined
    if (from !== undefined && from > 0 && to !== undefined) return scaled(rate, to, from)
    return published[base] > 0 ? scaled(rate, others[base], published[base]) : rate
  }
  const made: { -readonly [Name in keyof TokenRates]: TokenRates[Name] } = {
    input: of('input', 'input')!,
    output: of('output', 'output')!,
  }
  for (const [name, , base] of rateNames) {
    const rate = of(name, base)
    if (rate !== undefined) made[name] = rate
  }
  return made
}

/** `rate * to / from`, rounded up. Products can exceed what a double holds exactly. */
function scaled(rate: number, to: number, from: number): number {
  return Number((BigInt(to) * BigInt(rate) + BigInt(from) - 1n) / BigInt(from))
}

/** Dollars per million tokens as integer microdollars, rounded up. */
export function microdollars(dollars: number): number {
  return Math.ceil(Number((dollars * 1e6).toFixed(4)))
}
