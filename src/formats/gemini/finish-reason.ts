import type { FinishReason } from '../../domain/conversation.ts'

/** Reasons for which Google withholds an answer (contract 11.15). */
const filtered = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'MODEL_ARMOR',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
])

/**
 * The meaning of a `finishReason`; undefined if the model failed (`MALFORMED_FUNCTION_CALL`, `OTHER`…), which includes
 * every reason unknown here.
 */
export function readFinishReason(reason: string, calls: number): FinishReason | undefined {
  if (reason === 'STOP') return calls > 0 ? 'tool_calls' : 'stop'
  if (reason === 'MAX_TOKENS') return 'length'
  return filtered.has(reason) ? 'content_filter' : undefined
}
