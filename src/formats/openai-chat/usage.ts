import type { Json, JsonObject, Usage } from '../../domain/conversation.ts'
import { isObject } from '../../domain/json.ts'
import { writeUsageParts } from '../usage-parts.ts'

/** Reads a chat's usage; undefined where nothing was counted, so that nobody takes 0 for an answer (wire 7.15). */
export function readUsage(usage: Json | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined
  const inputTokens = count(usage['prompt_tokens'])
  const outputTokens = count(usage['completion_tokens'])
  if (inputTokens === 0 && outputTokens === 0) return undefined
  const input = usage['prompt_tokens_details']
  const output = usage['completion_tokens_details']
  return {
    inputTokens,
    outputTokens,
    // DeepSeek has its own name for it.
    cachedTokens: count(isObject(input) ? input['cached_tokens'] : usage['prompt_cache_hit_tokens']),
    reasoningTokens: count(isObject(output) ? output['reasoning_tokens'] : 0),
    source: 'counted',
  }
}

/** Writes usage with all the details that OpenAI's own answers have. */
export function writeUsage(usage: Usage): JsonObject {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
    ...writeUsageParts(usage),
  }
}

function count(value: Json | undefined): number {
  return typeof value === 'number' && value > 0 ? Math.round(value) : 0
}
