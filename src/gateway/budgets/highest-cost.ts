import type { Conversation } from '../../domain/conversation.ts'
import { isObject, type JsonObject } from '../../domain/json.ts'
import { inNanodollars } from '../../domain/money.ts'
import { hasAudioRates, type TokenPrice, worstCost } from '../../domain/token-price.ts'
import type { Backend } from '../ports.ts'
import { isAudioFree } from './audio-free-request.ts'

/** What a call may cost at most: nanodollars for its input, and for each token of its output. */
export interface HighestCost {
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
  /** Whether it certainly contains no audio and asks for none. Only called if that makes a difference. */
  readonly isAudioFree: () => boolean
  /** When it starts, epoch milliseconds. */
  readonly atMs: number
}

/** More than models make before they answer. */
const searchesWithTool = 10
/** Allowed or not, no model makes more. */
const mostSearches = 1_000
/** Tiers that a provider bills only to requests that name them. */
const askedForTiers: ReadonlySet<string> = new Set(['fast', 'batch'])

/**
 * The highest cost of a call at a backend, in nanodollars that are rounded up; undefined if its price is unknown. Of the fees that
 * do not depend on tokens, only those for Anthropic's web search have a price, and are counted (contract 46.8).
 */
export function highestCost(
  { price }: Backend,
  { inputTokens, tier, searches, isAudioFree, atMs }: PricedCall,
): HighestCost | undefined {
  const now = price?.at(atMs)
  if (now === undefined) return undefined
  const isWithoutAudio = hasAudioRates(now) && isAudioFree()
  const fees = BigInt(searches) * BigInt(now.webSearch ?? 0)
  let input = 0
  let perOutputToken = 0
  for (const possible of possibleTiers(tier, now)) {
    const at = { inputTokens, isWithoutAudio, ...(possible !== undefined && { tier: possible }) }
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

/** The tier that a request names, the searches that it allows, and whether it has audio. */
export function pricedRequest(body: JsonObject, conversation: Conversation): Omit<PricedCall, 'inputTokens' | 'atMs'> {
  const { hints, tools } = conversation
  const tier = body['speed'] === 'fast' ? 'fast' : hints.serviceTier?.toLowerCase()
  let searches = isObject(body['web_search_options']) ? searchesWithTool : 0
  for (const tool of tools) {
    if (tool.type !== 'hosted' || !/"type":"[^"]*search/.test(JSON.stringify(tool.declaration))) continue
    const { max_uses: most } = tool.declaration
    searches = Math.max(searches, searchesWithTool, typeof most === 'number' ? Math.min(most, mostSearches) : 0)
  }
  let audioFree: boolean | undefined
  return { tier, searches: Math.ceil(searches), isAudioFree: () => (audioFree ??= isAudioFree(body, conversation)) }
}
