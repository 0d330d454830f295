import type { UsdPerMillion } from '../domain/model-facts.ts'
import { usageCostUsd } from '../domain/request-cost.ts'
import type { EvalCandidate, EvalMember } from './ports.ts'

/** US dollars for a million tokens. */
export function makePrice(input: number, output: number): UsdPerMillion {
  return { input, output }
}

/** What so many tokens of a member cost, US dollars. */
export function usdOf({ price }: EvalMember, inputTokens: number, outputTokens: number): number {
  return usageCostUsd(price, { inputTokens, outputTokens, cachedTokens: 0 })
}

/** What simulated models pretend to cost. */
const pretended = makePrice(0.2, 0.8)

/**
 * The candidates with their prices: what was said by the user, by backend or by model, then what the configuration says;
 * those whose price nobody knows are in `unpriced`.
 */
export function withPrices(
  candidates: readonly EvalCandidate[],
  said: ReadonlyMap<string, UsdPerMillion>,
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
