import type { Json, Usage } from '../domain/conversation.ts'
import { maxTokenCount } from '../domain/token-counts.ts'

/** A provider's token count: 0 where it is absent or null, undefined where it is not a number of tokens. */
function readCount(value: Json | undefined): number | undefined {
  if (value === undefined || value === null) return 0
  if (typeof value !== 'number' || !(value >= 0 && value <= maxTokenCount)) return undefined
  return Math.round(value)
}

/** The four counts of one answer as its provider gave them. */
interface GivenCounts {
  readonly input: readonly (Json | undefined)[]
  readonly output: readonly (Json | undefined)[]
  readonly cached: Json | undefined
  readonly reasoning: Json | undefined
}

/**
 * Usage from counts that a provider gave; `input` and `output` are sums. Undefined where nothing was counted, so that
 * nobody takes 0 for an answer, and where a count is absurd: then the usage is estimated (contract 10.13).
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
