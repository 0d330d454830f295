import type { FinishReason } from '../../domain/conversation.ts'
import type { Json } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'

const written = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
} as const satisfies Record<FinishReason, string>

const read = new Map<string, FinishReason>([
  ...['end_turn', 'stop_sequence', 'tool_use', 'pause_turn', 'stop', 'compaction'].map(
    (word) => [word, 'stop'] as const,
  ),
  ...['max_tokens', 'model_context_window_exceeded', 'length'].map((word) => [word, 'length'] as const),
  ...['refusal', 'guardrail_intervened', 'content_filtered'].map((word) => [word, 'content_filter'] as const),
])

/**
 * The finish reason for `stop_reason`; `calls` is the number of tool calls. @throws UpstreamError for a reason that is
 * not a known success, and for none, which is what vLLM gives for an answer that it aborts (contract 11.18)
 */
export function readStopReason(reason: Json | undefined, calls: number): FinishReason {
  const known = typeof reason === 'string' ? read.get(reason) : undefined
  if (known === undefined) throw new UpstreamError('server_error')
  return known === 'stop' && calls > 0 ? 'tool_calls' : known
}

/** `stop_reason`. Announcing a call that was not made would make clients wait forever. */
export function writeStopReason(reason: FinishReason, calls: number): string {
  return reason === 'tool_calls' && calls === 0 ? written.stop : written[reason]
}
