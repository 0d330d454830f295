import type { FinishReason } from '../../domain/conversation.ts'

/**
 * Finish reasons of complete answers from servers of this format, in lower case; some use another vendor's terms. Every
 * other reason (`abort`, `error`, `network_error`…) means that the answer failed (contract 11.18).
 */
const reasons = new Map<string, FinishReason>([
  ...['stop', 'eos', 'eos_token', 'end_turn', 'stop_sequence', 'stop_token', 'end', 'complete', 'completed'].map(
    (word) => [word, 'stop'] as const,
  ),
  ...['tool_calls', 'tool_call', 'tool_use', 'function_call'].map((word) => [word, 'tool_calls'] as const),
  ...['length', 'max_tokens', 'max_output_tokens', 'model_length', 'model_context_window_exceeded'].map(
    (word) => [word, 'length'] as const,
  ),
  ...['content_filter', 'content_filtered', 'safety', 'refusal', 'sensitive', 'recitation', 'guardrail_intervened'].map(
    (word) => [word, 'content_filter'] as const,
  ),
])

/** Why a choice ended, given the number of its tool calls; undefined for a reason that is not a known success. */
export function readFinishReason(reason: string, calls: number): FinishReason | undefined {
  const known = reasons.get(reason.toLowerCase())
  // Many servers return `stop` after a call, or announce calls and make none.
  if (known === 'stop' || known === 'tool_calls') return calls > 0 ? 'tool_calls' : 'stop'
  return known
}
