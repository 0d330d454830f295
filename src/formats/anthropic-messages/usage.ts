import type { Json, JsonObject, Usage } from '../../domain/conversation.ts'
import { isObject, objectOf } from '../../domain/json.ts'
import { usageFrom } from '../token-count.ts'

const countNames = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens', 'output_tokens'] as const

/**
 * Follows the usage of one answer: a stream tells the input at its start and the output at its end, each count being the
 * total so far. What was read from the cache or written to it is not part of `input_tokens` here, but is of ours.
 */
export class UsageReader {
  /** The last word on each count; absent or null means no news. */
  readonly #given: Record<string, Json> = {}

  read(usage: Json | undefined): void {
    if (!isObject(usage)) return
    for (const name of countNames) this.#note(name, usage[name])
    this.#note('thinking_tokens', objectOf(usage['output_tokens_details'])['thinking_tokens'])
  }

  /** Undefined where there is none to believe. @see usageFrom */
  get usage(): Usage | undefined {
    const given = this.#given
    return usageFrom({
      input: [given['input_tokens'], given['cache_read_input_tokens'], given['cache_creation_input_tokens']],
      output: [given['output_tokens']],
      cached: given['cache_read_input_tokens'],
      reasoning: given['thinking_tokens'],
    })
  }

  #note(name: string, value: Json | undefined): void {
    if (value !== undefined && value !== null) this.#given[name] = value
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
