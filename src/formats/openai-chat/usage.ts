import type { Usage } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject, objectOf } from '../../domain/json.ts'
import { outputCounts, readUsageDetails } from '../openai/usage-details.ts'
import { firstCount, usageFrom } from '../token-count.ts'
import { writeUsageParts } from '../usage-parts.ts'

/**
 * Reads chat usage; undefined if there is no plausible usage. `serviceTier` stands beside it in an answer.
 * @see usageFrom
 */
export function readUsage(usage: Json | undefined, serviceTier?: Json): Usage | undefined {
  if (!isObject(usage)) return undefined
  const input = objectOf(usage['prompt_tokens_details'])
  const output = objectOf(usage['completion_tokens_details'])
  return usageFrom({
    input: [usage['prompt_tokens']],
    output: outputCounts(
      usage['prompt_tokens'],
      usage['completion_tokens'],
      output['reasoning_tokens'],
      usage['total_tokens'],
    ),
    // Moonshot's and DeepSeek's names for it, which may stand beside empty details.
    cached: firstCount(input['cached_tokens'], usage['cached_tokens'], usage['prompt_cache_hit_tokens']),
    // Other gateways use Anthropic's name.
    written: firstCount(input['cache_write_tokens'], usage['cache_creation_input_tokens']),
    written1h: objectOf(input['cache_creation_token_details'])['ephemeral_1h_input_tokens'],
    serviceTier,
    ...readUsageDetails(usage, input, output),
  })
}

/** Writes usage with all the details of OpenAI's own answers. */
export function writeUsage(usage: Usage): JsonObject {
  const { cacheWriteTokens: written, imageInputTokens: images, imageOutputTokens: drawn } = usage
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedTokens,
      ...(written !== undefined && { cache_write_tokens: written }),
      audio_tokens: usage.audioInputTokens ?? 0,
      ...(images !== undefined && { image_tokens: images }),
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: usage.audioOutputTokens ?? 0,
      ...(drawn !== undefined && { image_tokens: drawn }),
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
    ...writeUsageParts(usage),
  }
}
