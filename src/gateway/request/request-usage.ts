import type { Usage } from '../../domain/conversation.ts'
import { charsPerToken, estimatedUsage } from '../../domain/estimate-tokens.ts'
import type { Lane } from '../lanes/lane.ts'
import type { ModelRequest } from '../ports.ts'

/** The usage that the backend reported, or an estimate marked as such. */
export function usageOf(lane: Lane, request: ModelRequest): Usage {
  if (lane.usage !== undefined) return lane.usage
  return estimatedUsage(Math.ceil(request.bytes.length / charsPerToken), lane.estimatedTokens)
}
