import type { Usage } from '../domain/conversation.ts'
import type { Lane } from './lane.ts'
import type { ModelRequest } from './ports.ts'
import { charsPerToken } from './estimate-tokens.ts'

/** What the backend counted, or an estimate that says so where it did not. */
export function usageOf(lane: Lane, request: ModelRequest): Usage {
  if (lane.usage !== undefined) return lane.usage
  const inputTokens = Math.ceil(request.bytes.length / charsPerToken)
  return { inputTokens, outputTokens: lane.roughTokens, cachedTokens: 0, reasoningTokens: 0, source: 'estimated' }
}
