import type { Conversation } from '../../domain/conversation.ts'
import type { Picodollars } from '../../domain/money.ts'
import { worstCost } from '../../domain/token-price.ts'
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
  const at = { inputTokens, ...(tier !== undefined && { tier }) }
  const input = worstCost(now, { ...at, outputTokens: 0 })
  const withToken = worstCost(now, { ...at, outputTokens: 1 })
  if (input === undefined || withToken === undefined) return undefined
  const fees = BigInt(searches) * BigInt(now.webSearch ?? 0)
  return { input: inNanodollars(input + fees), perOutputToken: inNanodollars(withToken - input) }
}

/** The tier that a request names, and the searches that it allows. */
export function pricedRequest({ hints, tools }: Conversation): Pick<PricedCall, 'tier' | 'searches'> {
  const maySearch = tools.some(
    (tool) => tool.type === 'hosted' && /"type":"[^"]*search/.test(JSON.stringify(tool.declaration)),
  )
  return { tier: hints.serviceTier?.toLowerCase(), searches: maySearch ? searchesWithTool : 0 }
}

/** Rounded up. */
export function inNanodollars(amount: Picodollars): number {
  return Number((amount + picodollarsPerNanodollar - 1n) / picodollarsPerNanodollar)
}
