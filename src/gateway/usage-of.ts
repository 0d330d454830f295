import type { Usage } from '../domain/conversation.ts'
import type { Lane } from './lane.ts'
import type { ModelRequest } from './ports.ts'
import { charsPerToken, estimatedUsage } from './estimate-tokens.ts'

/** What the backend counted, or an estimate that says so where it did not. */
export function usageOf(lane: Lane, request: ModelRequest): Usage {
  if (lane.usage !== undefined) return lane.usage
  return estimatedUsage(Math.ceil(request.bytes.length / charsPerToken), lane.roughTokens)
}
