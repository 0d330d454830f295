import type { Usage } from '../domain/conversation.ts'
import type { Json } from '../domain/json.ts'
import { maxTokenCount } from '../runtime/token-counts.ts'

/** A provider's token count: 0 if absent or null, undefined if it is not a token count. */
function readCount(value: Json | undefined): number | undefined {
  if (value === undefined || value === null) return 0
  if (typeof value !== 'number' || !(value >= 0 && value <= maxTokenCount)) return undefined
  return Math.round(value)
}

/** The four counts of one answer, as the provider sent them. */
interface GivenCounts {
  readonly input: readonly (Json | undefined)[]
  readonly output: readonly (Json | undefined)[]
  readonly cached: Json | undefined
  readonly reasoning: Json | undefined
}

/**
 * Usage from a provider's counts; `input` and `output` are totals. Undefined if nothing was counted, so that 0 is not
 * taken as a result, and if a count is implausible: then the usage is estimated (contract 10.13).
 */
export function usageFrom(given: GivenCounts): Usage | undefined {
  const inputTokens = sum(given.input)
  const outputTokens = sum(given.output)
  const cachedTokens = readCount(given.cached)
  const reasoningTokens = readCount(given.reasoning)
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  if (cachedTokens === undefined || reasoningTokens === undefined) return undefined
  if (inputTokens === 0 && outputTokens === 0) return undefined
  return { inputTokens, outputTokens, cachedTokens, reasoningTokens, source: 'counted' }
}

function sum(values: readonly (Json | undefined)[]): number | undefined {
  let total = 0
  for (const value of values) {
    const count = readCount(value)
    if (count === undefined) return undefined
    total += count
  }
  return total <= maxTokenCount ? total : undefined
}
