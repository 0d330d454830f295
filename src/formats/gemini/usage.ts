import type { Usage } from '../../domain/conversation.ts'
import { tokensOfBytes, withEstimatedOutput } from '../../domain/estimate-tokens.ts'
import { type Json, isObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'
import { usageFrom } from '../token-count.ts'

const maxModalities = 16
/** How Vertex AI names what it calls `serviceTier` elsewhere. */
const trafficTiers: Readonly<Record<string, string>> = {
  ON_DEMAND: 'standard',
  ON_DEMAND_FLEX: 'flex',
  ON_DEMAND_PRIORITY: 'priority',
}

/**
 * Reads `usageMetadata`; undefined if there is no plausible usage. Google counts thinking separately from the answer,
 * we include it. `bytes`: how much of the answer was delivered so far. If it is not final, or has content that was
 * not counted, then the answer is estimated by that; Google does not count an empty one.
 */
export function readUsage(usage: Json | undefined, bytes = 0, isFinal = true): Usage | undefined {
  const counted = readCounts(usage)
  if (counted === undefined) return undefined
  const answered = counted.outputTokens - counted.reasoningTokens
  if (isFinal && (answered > 0 || bytes === 0)) return counted
  const missing = Math.max(0, tokensOfBytes(bytes) - answered)
  return withEstimatedOutput(counted, counted.outputTokens + missing)
}

function readCounts(usage: Json | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined
  const thoughts = usage['thoughtsTokenCount']
  const traffic = usage['trafficType']
  return usageFrom({
    input: [usage['promptTokenCount'], usage['toolUsePromptTokenCount']],
    output: [usage['candidatesTokenCount'], thoughts],
    cached: usage['cachedContentTokenCount'],
    reasoning: thoughts,
    audioInput: countOf('AUDIO', usage['promptTokensDetails']),
    imageInput: countOf('IMAGE', usage['promptTokensDetails']),
    cachedAudio: countOf('AUDIO', usage['cacheTokensDetails']),
    audioOutput: countOf('AUDIO', usage['candidatesTokensDetails']),
    imageOutput: countOf('IMAGE', usage['candidatesTokensDetails']),
    serviceTier: typeof traffic === 'string' ? (trafficTiers[traffic] ?? traffic) : usage['serviceTier'],
  })
}

function countOf(modality: string, details: Json | undefined): Json | undefined {
  if (!isArray(details)) return undefined
  for (const entry of details.slice(0, maxModalities))
    if (isObject(entry) && entry['modality'] === modality) return entry['tokenCount']
  return undefined
}
