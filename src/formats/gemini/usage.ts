import type { Json, Usage } from '../../domain/conversation.ts'
import { isObject } from '../../domain/json.ts'

/** Reads `usageMetadata`; undefined where nothing was counted. Google counts thoughts beside the answer, we inside it. */
export function readUsage(usage: Json | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined
  const reasoningTokens = count(usage['thoughtsTokenCount'])
  const inputTokens = count(usage['promptTokenCount']) + count(usage['toolUsePromptTokenCount'])
  const outputTokens = count(usage['candidatesTokenCount']) + reasoningTokens
  if (inputTokens === 0 && outputTokens === 0) return undefined
  const cachedTokens = count(usage['cachedContentTokenCount'])
  return { inputTokens, outputTokens, cachedTokens, reasoningTokens, source: 'counted' }
}

function count(value: Json | undefined): number {
  return typeof value === 'number' && value > 0 ? Math.round(value) : 0
}
