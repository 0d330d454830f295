import { ServiceError } from '../../domain/errors.ts'
import type { JsonObject } from '../../domain/json.ts'

const field = 'thread'
/**
 * This code tells Anthropic's SDK to send the whole conversation instead, which its tool runner then does by itself.
 */
const threadCode = 'thread_unsupported_request'

/**
 * Rejects requests that store the conversation on the server: the next turn may go to another backend, which would not
 * know it (contract 2.43). @throws ServiceError `unsupported_parameter`
 */
export function rejectThread(body: JsonObject): void {
  if (body[field] === undefined || body[field] === null) return
  const problem = 'Conversations are not stored here. Send the whole conversation in messages, without thread.'
  throw new ServiceError('unsupported_parameter', { param: field, words: { problem } })
}

/** The error code as Anthropic's SDK expects it: its own code if it has one for the case, ours otherwise. */
export function errorCodeOf(code: string, param: string | null): string {
  return code === 'unsupported_parameter' && param === field ? threadCode : code
}
