import type { Usage } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject, objectOf } from '../../domain/json.ts'
import { usageFrom } from '../token-count.ts'
import { writeUsageParts } from '../usage-parts.ts'

/** Reads chat usage; undefined if there is no plausible usage. @see usageFrom */
export function readUsage(usage: Json | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined
  const { prompt_tokens_details: input, completion_tokens_details: output } = usage
  return usageFrom({
    input: [usage['prompt_tokens']],
    output: [usage['completion_tokens']],
    // DeepSeek's name for it.
    cached: isObject(input) ? input['cached_tokens'] : usage['prompt_cache_hit_tokens'],
    reasoning: objectOf(output)['reasoning_tokens'],
  })
}

/** Writes usage with all the details of OpenAI's own answers. */
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
