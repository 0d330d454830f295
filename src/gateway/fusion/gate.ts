import type { Conversation } from '../../domain/conversation.ts'
import { invalidRequest } from '../../domain/errors.ts'
import { unsupported } from '../../formats/translatable.ts'
import { isInstruction } from './users-words.ts'

/** An answer that may not be longer than this many tokens has no room for what a panel finds. */
const leastAnswerTokens = 64

/** Why what could have been deliberated about is answered by one model alone; `not_allowed`: its caller wants the tool not called. */
export type SkipReason = 'tool_loop' | 'not_a_user_turn' | 'short_answer' | 'no_member_available' | 'not_allowed'

export type GateDecision = { readonly run: true } | { readonly run: false; readonly reason: SkipReason }

/**
 * Whether this turn is deliberated: exactly once for what a user said, and never while the model that answers is at
 * work with its tools (contract 15.1). Instructions behind the user's words change nothing.
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
 * Refuses what no fused answer can give. `depth` is how many fusions this request is already inside of: there is no
 * fusion within fusion, also not through a second router. `param` is what asks for it. @throws ServiceError `unsupported_parameter`, `invalid_request`
 */
export function assertFusable({ sampling }: Conversation, depth: number, param: 'model' | 'tools' = 'model'): void {
  if (depth > 0) {
    const instead = param === 'model' ? 'Name a model or profile.' : 'Send the request without the tool.'
    throw invalidRequest(param, `A fusion may not be part of another fusion. ${instead}`)
  }
  if ((sampling.choices ?? 1) > 1) throw unsupported('n', 'A fused answer is one answer: n must be 1.')
  if (sampling.logprobs === true || (sampling.topLogprobs ?? 0) > 0)
    throw unsupported('logprobs', 'A fused answer has no logprobs. Send the request without them.')
}
