import type { Usage } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject, objectOf } from '../../domain/json.ts'
import { usageFrom } from '../token-count.ts'
import { writeUsageParts } from '../usage-parts.ts'

/** Reads a response's usage; undefined if there is no plausible usage. @see usageFrom */
export function readUsage(usage: Json | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined
  return usageFrom({
    input: [usage['input_tokens']],
    output: [usage['output_tokens']],
    cached: objectOf(usage['input_tokens_details'])['cached_tokens'],
    reasoning: objectOf(usage['output_tokens_details'])['reasoning_tokens'],
  })
}

export function writeUsage(usage: Usage): JsonObject {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: 0 },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
    ...writeUsageParts(usage),
  }
}
