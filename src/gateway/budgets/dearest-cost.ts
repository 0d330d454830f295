import type { Conversation } from '../../domain/conversation.ts'
import { isObject, type JsonObject } from '../../domain/json.ts'
import type { Picodollars } from '../../domain/money.ts'
import { type TokenPrice, worstCost } from '../../domain/token-price.ts'
import type { Backend } from '../ports.ts'

/** What a call may cost at most: nanodollars for its input, and for each token of its output. */
export interface DearestCost {
  readonly input: number
  readonly perOutputToken: number
}

/** A call that a provider may bill. */
export interface PricedCall {
  /** The most input tokens. */
  readonly inputTokens: number
  /** The service tier that the request names, if any. */
  readonly tier: string | undefined
  /** The most searches that the provider runs for it. */
  readonly searches: number
  /** When it starts, epoch milliseconds. */
  readonly atMs: number
}

const picodollarsPerNanodollar = 1_000n
/** More than models make before they answer. */
const searchesWithTool = 10
/** Allowed or not, no model makes more. */
const mostSearches = 1_000
/** Tiers that a provider bills only to requests that name them. */
const askedForTiers: ReadonlySet<string> = new Set(['fast', 'batch'])

/**
 * The dearest cost of a call at a backend, in nanodollars that are rounded up; undefined if its price is unknown. Other fees than
 * those for tokens and searches are not counted (contract 46.8).
 */
export function dearestCost(
  { price }: Backend,
  { inputTokens, tier, searches, atMs }: PricedCall,
): DearestCost | undefined {
  const now = price?.at(atMs)
  if (now === undefined) return undefined
  const fees = BigInt(searches) * BigInt(now.webSearch ?? 0)
  let input = 0
  let perOutputToken = 0
  for (const possible of possibleTiers(tier, now)) {
    const at = { inputTokens, ...(possible !== undefined && { tier: possible }) }
    const alone = worstCost(now, { ...at, outputTokens: 0 })
    const withToken = worstCost(now, { ...at, outputTokens: 1 })
    if (alone === undefined || withToken === undefined) return undefined
    input = Math.max(input, inNanodollars(alone + fees))
    perOutputToken = Math.max(perOutputToken, inNanodollars(withToken - alone))
  }
  return { input, perOutputToken }
}

/**
 * The service tiers that a provider may bill: besides the one that the request names, the usual one; without a name, any that a
 * project can have as its default.
 */
export function possibleTiers(tier: string | undefined, { tiers = {} }: TokenPrice): readonly (string | undefined)[] {
  if (tier !== undefined && tier !== 'auto') return [undefined, tier]
  return [undefined, ...Object.keys(tiers).filter((name) => !askedForTiers.has(name))]
}

/** The tier that a request names, and the searches that it allows. */
export function pricedRequest(body: JsonObject, { hints, tools }: Conversation): Pick<PricedCall, 'tier' | 'searches'> {
  const tier = body['speed'] === 'fast' ? 'fast' : hints.serviceTier?.toLowerCase()
  let searches = isObject(body['web_search_options']) ? searchesWithTool : 0
  for (const tool of tools) {
    if (tool.type !== 'hosted' || !/"type":"[^"]*search/.test(JSON.stringify(tool.declaration))) continue
    const { max_uses: most } = tool.declaration
    searches = Math.max(searches, searchesWithTool, typeof most === 'number' ? Math.min(most, mostSearches) : 0)
  }
  return { tier, searches: Math.ceil(searches) }
}

/** Rounded up. */
export function inNanodollars(amount: Picodollars): number {
  return Number((amount + picodollarsPerNanodollar - 1n) / picodollarsPerNanodollar)
}
