import { createHash } from 'node:crypto'
import type { UsdPerMillion } from '../../domain/model-facts.ts'
import { type ModelPrice, operatorsPrice } from '../../domain/model-price.ts'
import type { TokenPrice } from '../../domain/token-price.ts'
import { type PricedModel, publishedPriceOf, publishedPrices } from './published-prices.ts'

const digestCharacters = 8

/**
 * The prices in force: the published ones, and above them what the operator states. Their version is the day of the
 * published table and, if the operator states any price, a digest of those (contract 42.6).
 */
export interface PriceCatalog {
  readonly version: string
  /** Undefined if neither the operator nor the published table has a price. */
  priceOf(model: PricedModel, own?: UsdPerMillion): ModelPrice | undefined
}

/** @param stated every price that the operator states, with the backend or model that it is for */
export function openPriceCatalog(stated: readonly (readonly [string, UsdPerMillion | undefined])[]): PriceCatalog {
  const own = stated.filter(([, price]) => price !== undefined)
  const { version: day } = publishedPrices()
  const version = own.length === 0 ? day : `${day}+${digestOf(own)}`
  return {
    version,
    priceOf(model, price) {
      const published = publishedPriceOf(model)
      if (price === undefined) return published === undefined ? undefined : { version, at: published }
      return { version, at: perPublished(published, (usual) => operatorsPrice(price, usual)) }
    },
  }
}

/** A price that follows the published one is made again only when that one changes: every call asks for it. */
function perPublished(
  published: ((atMs: number) => TokenPrice) | undefined,
  make: (published: TokenPrice | undefined) => TokenPrice,
): (atMs: number) => TokenPrice {
  let usual = published?.(0)
  let price = make(usual)
  return (atMs) => {
    const now = published?.(atMs)
    if (now !== usual) {
      usual = now
      price = make(now)
    }
    return price
  }
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, digestCharacters)
}
