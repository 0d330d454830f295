import type { Usage } from './conversation.ts'
import type { UsdPerMillion } from './model-facts.ts'
import { type Picodollars, readDollars, writeDollars, writeUsd } from './money.ts'

/** What a request, or one of its calls, costs at its providers. */
export interface RequestCost {
  readonly amount: Picodollars
  /** What caching saved, negative if writes cost more than reads saved; undefined if that is unknown. */
  readonly saved: Picodollars | undefined
  /** Whether usage was estimated, or a provider may have charged for a call that gave no answer. */
  readonly isEstimated: boolean
  /** The version of the prices; absent if none were needed. */
  readonly prices?: string
}

/** A cost that cannot be known, because a price or the usage is missing. */
export const unknownCost = Symbol('unknown')

/** A cost, unless it cannot be known. */
export type PossibleCost = RequestCost | typeof unknownCost

/** The cost of both; unknown if either is (contract 42.5). */
export function addCosts(a: PossibleCost, b: PossibleCost): PossibleCost {
  if (a === unknownCost || b === unknownCost) return unknownCost
  const prices = b.prices ?? a.prices
  return {
    amount: a.amount + b.amount,
    saved: a.saved === undefined || b.saved === undefined ? undefined : a.saved + b.saved,
    isEstimated: a.isEstimated || b.isEstimated,
    ...(prices === undefined ? {} : { prices }),
  }
}

/** The cost of a request in its record: exact decimal US dollars (contract 42.1). */
export interface CostRecord {
  readonly usd: string
  /** What caching saved; negative if writes cost more than reads saved. Absent if that is unknown. */
  readonly savedUsd?: string
  /** Whether usage was estimated, or a provider may have charged for a call that gave no answer. */
  readonly estimated?: true
  /** The version of the prices; absent if none were needed. */
  readonly prices?: string
}

export function costRecord({ amount, saved, isEstimated, prices }: RequestCost): CostRecord {
  return {
    usd: writeDollars(amount),
    ...(saved === undefined ? {} : { savedUsd: writeDollars(saved) }),
    ...(isEstimated ? { estimated: true } : {}),
    ...(prices === undefined ? {} : { prices }),
  }
}

/** A recorded cost for people (contract 17.10), such as `0.0312 USD (estimated)`. */
export function describeCost({ usd, estimated }: CostRecord): string {
  return `${writeUsd(readDollars(usd) ?? 0n)}${estimated === true ? ' (estimated)' : ''}`
}

/** What caching saved in a request, for people; undefined if it made no difference. */
export function describeSavings({ savedUsd }: CostRecord): string | undefined {
  const saved = savedUsd === undefined ? undefined : readDollars(savedUsd)
  if (saved === undefined || saved === 0n) return undefined
  return saved > 0n
    ? `caching saved ${writeUsd(saved)}`
    : `writing to the cache cost ${writeUsd(-saved)} more than it saved`
}

/** The configured price of a backend's model, by backend id; undefined if the configuration has none. */
export type FindPrice = (backendId: string) => UsdPerMillion | undefined

/** The cost in US dollars of assumed usage, for comparisons only: records have exact costs. */
export function usageCostUsd(
  { input, output, cachedInput = input }: UsdPerMillion,
  { inputTokens, outputTokens, cachedTokens }: Pick<Usage, 'inputTokens' | 'outputTokens' | 'cachedTokens'>,
): number {
  const cached = Math.min(cachedTokens, inputTokens)
  return ((inputTokens - cached) * input + cached * cachedInput + outputTokens * output) / 1_000_000
}

/** The configured prices of backends and, by model name, of accounts' own upstreams. */
export function priceBook(
  backends: readonly { readonly id: string; readonly facts: { readonly usdPerMillion?: UsdPerMillion } }[],
  upstreams: readonly { readonly id: string; readonly model: string }[],
  modelFacts: ReadonlyMap<string, { readonly usdPerMillion?: UsdPerMillion }>,
): FindPrice {
  return (id) => {
    const own = upstreams.find((upstream) => upstream.id === id)
    if (own !== undefined) return modelFacts.get(own.model)?.usdPerMillion
    return backends.find((backend) => backend.id === id)?.facts.usdPerMillion
  }
}
