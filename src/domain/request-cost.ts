import type { Usage } from './conversation.ts'
import type { UsdPerMillion } from './model-facts.ts'
import type { RequestRecord } from './requests.ts'

/** The price of a backend's model, by backend id; undefined if the configuration has none. */
export type FindPrice = (backendId: string) => UsdPerMillion | undefined

/** The provider's cost of a call in US dollars. Cached tokens are part of the input tokens. */
export function usageCostUsd(
  { input, output, cachedInput = input }: UsdPerMillion,
  { inputTokens, outputTokens, cachedTokens }: Pick<Usage, 'inputTokens' | 'outputTokens' | 'cachedTokens'>,
): number {
  const cached = Math.min(cachedTokens, inputTokens)
  return ((inputTokens - cached) * input + cached * cachedInput + outputTokens * output) / 1_000_000
}

/**
 * The cost of a recorded request at the configured prices, in US dollars: of the backend that answered, or of all calls
 * of its fusions. Undefined if the usage or a price is unknown. An estimate: it uses current prices, and excludes
 * failed calls that reported no usage (contract 17.10).
 */
export function requestCostUsd(
  { usage, attempts, fusions = [] }: Pick<RequestRecord, 'usage' | 'attempts' | 'fusions'>,
  priceOf: FindPrice,
): number | undefined {
  if (fusions.length > 0) {
    const costs = fusions.map(({ costUsd }) => costUsd)
    return costs.every((cost) => cost !== undefined) ? costs.reduce((sum, cost) => sum + cost, 0) : undefined
  }
  const backend = attempts.at(-1)?.backend
  const price = backend === undefined ? undefined : priceOf(backend)
  return usage === undefined || price === undefined ? undefined : usageCostUsd(price, usage)
}

/** An amount in US dollars, such as `0.0312 USD`, with four decimals because single requests cost little. */
export function writeUsd(amount: number): string {
  return amount > 0 && amount < 0.0001 ? 'less than 0.0001 USD' : `${amount.toFixed(4)} USD`
}

/** The prices of configured backends and, by model name, of accounts' own upstreams. */
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
