import type { FinishReason, Json } from '../../domain/conversation.ts'

const written = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
} as const satisfies Record<FinishReason, string>

/** Why an answer ended, from `stop_reason`; `calls` is how many tools it called. */
export function readStopReason(reason: Json | undefined, calls: number): FinishReason {
  if (reason === 'max_tokens' || reason === 'model_context_window_exceeded') return 'length'
  if (reason === 'refusal') return 'content_filter'
  // `end_turn`, `stop_sequence`, `tool_use`, `pause_turn`, and whatever may come to be.
  return calls > 0 ? 'tool_calls' : 'stop'
}

/** `stop_reason`; a call that is announced and not made would make clients wait for nothing. */
export function writeStopReason(reason: FinishReason, calls: number): string {
  return reason === 'tool_calls' && calls === 0 ? written.stop : written[reason]
}
