import type { UsdPerMillion, UsdRates } from './model-facts.ts'
import type { TokenPrice, TokenRates } from './token-price.ts'

/** What a provider charges for a model, and which prices these are. */
export interface ModelPrice {
  /** Identifies the prices, so that a record can name them (contract 42.6). */
  readonly version: string
  /** The price of calls that start at this time. */
  at(timeMs: number): TokenPrice
}

/** Our name of a rate: the operator's name, and what it follows if the operator did not state it. */
const rateNames = [
  ['cacheRead', 'cachedInput', 'input'],
  ['cacheWrite', 'cacheWrite', 'input'],
  ['cacheWrite1h', 'cacheWrite1h', 'input'],
  ['audioInput', 'audioInput', 'input'],
  ['audioOutput', 'audioOutput', 'output'],
  ['imageInput', 'imageInput', 'input'],
  ['imageOutput', 'imageOutput', 'output'],
] as const satisfies readonly (readonly [keyof TokenRates, keyof UsdRates, 'input' | 'output'])[]

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
  return {
    rates: operatorsRates(own, published?.rates),
    ...(longContext === undefined
      ? {}
      : { longContext: [{ above: longContext.above, rates: operatorsRates(longContext, published?.rates) }] }),
    ...(tiers === undefined ? {} : { tiers }),
    ...(published?.webSearch === undefined ? {} : { webSearch: published.webSearch }),
  }
}

function operatorsRates(own: UsdRates, published: TokenRates | undefined): TokenRates {
  const rates: { -readonly [Name in keyof TokenRates]: TokenRates[Name] } = {
    input: microdollars(own.input),
    output: microdollars(own.output),
  }
  for (const [name, ownName, base] of rateNames) {
    const stated = own[ownName]
    const usual = published?.[name]
    if (stated !== undefined) rates[name] = microdollars(stated)
    // A stated price for all writes is also that for long ones.
    else if (name === 'cacheWrite1h' && own.cacheWrite !== undefined) continue
    else if (published !== undefined && usual !== undefined && published[base] > 0)
      rates[name] = Number(
        (BigInt(usual) * BigInt(rates[base]) + BigInt(published[base]) - 1n) / BigInt(published[base]),
      )
  }
  return rates
}

/** Dollars per million tokens as integer microdollars, rounded up. */
export function microdollars(dollars: number): number {
  return Math.ceil(Number((dollars * 1e6).toFixed(4)))
}
