import type { Conversation } from '../../../domain/conversation.ts'
import { invalidRequest } from '../../../domain/errors.ts'
import { unsupported } from '../../../formats/assert-translatable.ts'
import { isInstruction } from './user-turns.ts'

/** An answer limited to fewer tokens than this has no room for a panel's findings. */
const leastAnswerTokens = 64

/**
 * Why a single model answers a request that could have been deliberated; `not_allowed`: the caller disallows the
 * tool (contract 15.13).
 */
export type SkipReason =
  | 'tool_loop'
  | 'not_a_user_turn'
  | 'short_answer'
  | 'no_member_available'
  | 'overloaded'
  | 'not_allowed'

export type GateDecision = { readonly run: true } | { readonly run: false; readonly reason: SkipReason }

/**
 * Whether to deliberate: exactly once per user message, and never while the answering model works with its tools
 * (contract 15.1). Instructions after the user's message change nothing.
 */
export function decideGate({ turns, sampling }: Conversation): GateDecision {
  const last = turns.findLast((turn) => !isInstruction(turn))
  if (last?.role === 'tool') return { run: false, reason: 'tool_loop' }
  if (last?.role !== 'user') return { run: false, reason: 'not_a_user_turn' }
  const { maxOutputTokens } = sampling
  if (maxOutputTokens !== undefined && maxOutputTokens < leastAnswerTokens)
    return { run: false, reason: 'short_answer' }
  return { run: true }
}

/**
 * Rejects what a fused answer cannot provide. `depth` is how many fusions the request is already nested in: fusions
 * do not nest, even through a second router (contract 15.16, 16.11). `param` is the field that requests the fusion.
 * @throws ServiceError `unsupported_parameter`, `invalid_request`
 */
export function assertFusable({ sampling }: Conversation, depth: number, param: 'model' | 'tools' = 'model'): void {
  if (depth > 0) {
    const instead = param === 'model' ? 'Use another model or profile.' : 'Send the request without the tool.'
    throw invalidRequest(param, `Fusions cannot be nested. ${instead}`)
  }
  if ((sampling.choices ?? 1) > 1) throw unsupported('n', 'Fusion returns one answer: n must be 1.')
  if (sampling.logprobs === true || (sampling.topLogprobs ?? 0) > 0)
    throw unsupported('logprobs', 'A fused answer has no logprobs. Send the request without them.')
}
