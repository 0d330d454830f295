import type { Usage } from '../../domain/conversation.ts'
import { type Json, isObject } from '../../domain/json.ts'
import { usageFrom } from '../token-count.ts'

/**
 * Reads `usageMetadata`; undefined if there is no plausible usage. Google counts thinking separately from the answer,
 * we include it.
 */
export function readUsage(usage: Json | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined
  const thoughts = usage['thoughtsTokenCount']
  return usageFrom({
    input: [usage['promptTokenCount'], usage['toolUsePromptTokenCount']],
    output: [usage['candidatesTokenCount'], thoughts],
    cached: usage['cachedContentTokenCount'],
    reasoning: thoughts,
  })
}
