import type { Json, JsonObject, Usage } from '../../domain/conversation.ts'
import { isObject } from '../../domain/json.ts'

/**
 * Follows the usage of one answer: a stream tells the input at its start and the output at its end, each count being the
 * total so far. What was read from the cache or written to it is not part of `input_tokens` here, but is of ours.
 */
export class UsageReader {
  #input = 0
  #cacheRead = 0
  #cacheWritten = 0
  #output = 0
  #thinking = 0

  read(usage: Json | undefined): void {
    if (!isObject(usage)) return
    this.#input = count(usage['input_tokens']) ?? this.#input
    this.#cacheRead = count(usage['cache_read_input_tokens']) ?? this.#cacheRead
    this.#cacheWritten = count(usage['cache_creation_input_tokens']) ?? this.#cacheWritten
    this.#output = count(usage['output_tokens']) ?? this.#output
    const details = usage['output_tokens_details']
    if (isObject(details)) this.#thinking = count(details['thinking_tokens']) ?? this.#thinking
  }

  /** Undefined where nothing was counted, so that nobody takes 0 for an answer (wire 7.15). */
  get usage(): Usage | undefined {
    const inputTokens = this.#input + this.#cacheRead + this.#cacheWritten
    if (inputTokens === 0 && this.#output === 0) return undefined
    return {
      inputTokens,
      outputTokens: this.#output,
      cachedTokens: this.#cacheRead,
      reasoningTokens: this.#thinking,
      source: 'counted',
    }
  }
}

/** Usage as an answer says it; zeros where nothing was counted, because clients expect numbers. */
export function writeUsage(usage: Usage | undefined): JsonObject {
  const cached = usage?.cachedTokens ?? 0
  return {
    input_tokens: Math.max(0, (usage?.inputTokens ?? 0) - cached),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: usage?.outputTokens ?? 0,
    output_tokens_details: { thinking_tokens: usage?.reasoningTokens ?? 0 },
  }
}

/** A count; undefined where it is absent or null, which means no news. */
function count(value: Json | undefined): number | undefined {
  return typeof value === 'number' && value >= 0 ? Math.round(value) : undefined
}
