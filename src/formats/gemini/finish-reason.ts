import type { FinishReason } from '../../domain/conversation.ts'
import { UpstreamError } from '../../domain/upstream.ts'

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
 * What a `finishReason` means. Every other one says that the model failed (`MALFORMED_FUNCTION_CALL`, `OTHER`…): such an
 * answer is not whole. @throws UpstreamError `server_error`
 */
export function readFinishReason(reason: string, calls: number): FinishReason {
  if (reason === 'STOP') return calls > 0 ? 'tool_calls' : 'stop'
  if (reason === 'MAX_TOKENS') return 'length'
  if (filtered.has(reason)) return 'content_filter'
  throw new UpstreamError('server_error')
}
