import type { Conversation, Sampling, Usage } from '../../domain/conversation.ts'
import { charsPerToken, estimatedUsage, estimateUsage, withDeliveredOutput } from '../../domain/estimate-tokens.ts'
import type { Lane } from '../lanes/lane.ts'

/** A count is only absurd if it is far above what a request allows: reasoning can be outside of its limit. */
const safetyFactor = 4
/** More than the input of any call with files and tools, and than any model writes in one answer. */
const mostInput = 10_000_000
const mostOutput = 200_000

/**
 * The usage that the backend reported, or an estimate marked as such. If it reported only the input, because its answer
 * was cut, the output is what it delivered. Counts that the request cannot have caused are estimated, too (contract 10.13).
 */
export function usageOf(lane: Lane, conversation: Conversation | undefined, bodyLength: number): Usage {
  const { usage, estimatedTokens } = lane
  if (usage !== undefined && !isAbsurd(usage, conversation?.sampling, bodyLength))
    return withDeliveredOutput(usage, estimatedTokens)
  // Images and files are not as long in tokens as in bytes. Requests for embeddings are not conversations.
  if (conversation !== undefined && conversation.turns.length > 0) return estimateUsage(conversation, estimatedTokens)
  return estimatedUsage(Math.ceil(bodyLength / charsPerToken), estimatedTokens)
}

/** Whether the backend counted, but an estimate stands for that. */
export function isReplaced(lane: Pick<Lane, 'usage'> | undefined, used: Usage | undefined): boolean {
  return lane?.usage?.source === 'counted' && used?.source === 'estimated'
}

/** Whether a request with a body of this length cannot have caused these counts (contract 10.13). */
export function isAbsurd({ inputTokens, outputTokens }: Usage, sampling: Sampling = {}, bodyLength: number): boolean {
  if (inputTokens > Math.max(mostInput, safetyFactor * bodyLength)) return true
  const { maxOutputTokens = mostOutput, choices = 1, candidates = choices } = sampling
  return outputTokens > candidates * Math.max(mostOutput, safetyFactor * maxOutputTokens)
}
