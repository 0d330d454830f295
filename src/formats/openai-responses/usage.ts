import type { Json, JsonObject, Usage } from '../../domain/conversation.ts'
import { isObject } from '../../domain/json.ts'
import { writeUsageParts } from '../usage-parts.ts'

/** Reads a response's usage; undefined where nothing was counted, so that nobody takes 0 for an answer (wire 7.15). */
export function readUsage(usage: Json | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined
  const inputTokens = count(usage['input_tokens'])
  const outputTokens = count(usage['output_tokens'])
  if (inputTokens === 0 && outputTokens === 0) return undefined
  const input = usage['input_tokens_details']
  const output = usage['output_tokens_details']
  return {
    inputTokens,
    outputTokens,
    cachedTokens: count(isObject(input) ? input['cached_tokens'] : 0),
    reasoningTokens: count(isObject(output) ? output['reasoning_tokens'] : 0),
    source: 'counted',
  }
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

function count(value: Json | undefined): number {
  return typeof value === 'number' && value > 0 ? Math.round(value) : 0
}
