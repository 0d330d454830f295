import type { Usage } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject, objectOf } from '../../domain/json.ts'
import { usageFrom } from '../token-count.ts'

const countNames = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens', 'output_tokens'] as const

/**
 * Tracks the usage of one answer: a stream reports the input at its start and the output at its end, each count being
 * the total so far. Tokens read from or written to the cache are not part of `input_tokens` here, but are part of ours.
 */
export class UsageReader {
  /** The last value of each count; absent or null means no change. */
  readonly #given: Record<string, Json> = {}

  read(usage: Json | undefined): void {
    if (!isObject(usage)) return
    for (const name of countNames) this.#note(name, usage[name])
    this.#note('thinking_tokens', objectOf(usage['output_tokens_details'])['thinking_tokens'])
  }

  /** Undefined if there is no plausible usage. @see usageFrom */
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

/** Usage for the client; zeros if nothing was counted, because clients expect numbers. */
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
