import type { Conversation, Usage } from '../../domain/conversation.ts'
import { charsPerToken, estimatedUsage, estimateUsage, withDeliveredOutput } from '../../domain/estimate-tokens.ts'
import type { Lane } from '../lanes/lane.ts'

/**
 * The usage that the backend reported, or an estimate marked as such. If it reported only the input, because its answer
 * was cut, the output is what it delivered.
 */
export function usageOf(lane: Lane, conversation: Conversation | undefined, bodyLength: number): Usage {
  const { usage, estimatedTokens } = lane
  if (usage !== undefined) return withDeliveredOutput(usage, estimatedTokens)
  // Images and files are not as long in tokens as in bytes. Requests for embeddings are not conversations.
  if (conversation !== undefined && conversation.turns.length > 0) return estimateUsage(conversation, estimatedTokens)
  return estimatedUsage(Math.ceil(bodyLength / charsPerToken), estimatedTokens)
}
