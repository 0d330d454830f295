import type { Usage } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject, objectOf } from '../../domain/json.ts'
import { outputCounts, readUsageDetails } from '../openai/usage-details.ts'
import { firstCount, usageFrom } from '../token-count.ts'
import { writeUsageParts } from '../usage-parts.ts'

/**
 * Reads a response's usage; undefined if there is no plausible usage. `serviceTier` stands beside it in a response.
 * @see usageFrom
 */
export function readUsage(usage: Json | undefined, serviceTier?: Json): Usage | undefined {
  if (!isObject(usage)) return undefined
  const input = objectOf(usage['input_tokens_details'])
  const output = objectOf(usage['output_tokens_details'])
  return usageFrom({
    input: [usage['input_tokens']],
    output: outputCounts(
      usage['input_tokens'],
      usage['output_tokens'],
      output['reasoning_tokens'],
      usage['total_tokens'],
    ),
    cached: firstCount(input['cached_tokens'], usage['cached_tokens']),
    written: input['cache_write_tokens'],
    serviceTier,
    ...readUsageDetails(usage, input, output),
  })
}

export function writeUsage(usage: Usage): JsonObject {
  const { audioInputTokens, audioOutputTokens, imageInputTokens, imageOutputTokens } = usage
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: {
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: usage.cacheWriteTokens ?? 0,
      ...(audioInputTokens !== undefined && { audio_tokens: audioInputTokens }),
      ...(imageInputTokens !== undefined && { image_tokens: imageInputTokens }),
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      ...(audioOutputTokens !== undefined && { audio_tokens: audioOutputTokens }),
      ...(imageOutputTokens !== undefined && { image_tokens: imageOutputTokens }),
    },
    total_tokens: usage.inputTokens + usage.outputTokens,
    ...writeUsageParts(usage),
  }
}
