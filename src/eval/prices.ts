import { operatorsPrice } from '../domain/model-price.ts'
import { inDollars } from '../domain/money.ts'
import { type TokenPrice, worstCost } from '../domain/token-price.ts'
import type { EvalCandidate, EvalMember } from './ports.ts'

/** A price in US dollars per million tokens. */
export function makePrice(input: number, output: number): TokenPrice {
  return operatorsPrice({ input, output })
}

/** The highest cost of these tokens at a member's price, in US dollars. */
export function usdOf({ price }: EvalMember, inputTokens: number, outputTokens: number): number {
  return inDollars(worstCost(price, { inputTokens, outputTokens })!)
}

/** The invented price of simulated models. */
const pretended = makePrice(0.2, 0.8)

/**
 * The candidates with their prices: from the user, by backend or by model, otherwise from the configuration. Those
 * without a known price are in `unpriced`.
 */
export function withPrices(
  candidates: readonly EvalCandidate[],
  said: ReadonlyMap<string, TokenPrice>,
): { readonly members: readonly EvalMember[]; readonly unpriced: readonly EvalCandidate[] } {
  const members: EvalMember[] = []
  const unpriced: EvalCandidate[] = []
  for (const candidate of candidates) {
    const usual = candidate.price ?? (candidate.simulated ? pretended : undefined)
    const price = said.get(candidate.id) ?? said.get(candidate.model) ?? usual
    if (price === undefined) unpriced.push(candidate)
    else members.push({ ...candidate, price })
  }
  return { members, unpriced }
}
