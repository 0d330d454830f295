import type { FinishReason } from '../../domain/conversation.ts'

/** The reasons for which Google holds an answer back. */
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
 * What a `finishReason` means; undefined where the model failed (`MALFORMED_FUNCTION_CALL`, `OTHER`…), as every reason
 * says that is not known here.
 */
export function readFinishReason(reason: string, calls: number): FinishReason | undefined {
  if (reason === 'STOP') return calls > 0 ? 'tool_calls' : 'stop'
  if (reason === 'MAX_TOKENS') return 'length'
  return filtered.has(reason) ? 'content_filter' : undefined
}
