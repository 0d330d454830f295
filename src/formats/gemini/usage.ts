import type { Json, Usage } from '../../domain/conversation.ts'
import { isObject } from '../../domain/json.ts'
import { usageFrom } from '../token-count.ts'

/** Reads `usageMetadata`; undefined where there is none to believe. Google counts thoughts beside the answer, we inside it. */
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
