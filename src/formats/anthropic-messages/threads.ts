import type { JsonObject } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'

const field = 'thread'
/** By this code Anthropic's SDK knows to send the whole conversation instead, as its tool runner then does by itself. */
const threadCode = 'thread_unsupported_request'

/**
 * Refuses what lets the server keep the conversation: the next turn may go to another backend, which would not know it.
 * @throws ServiceError `unsupported_parameter`
 */
export function refuseThread(body: JsonObject): void {
  if (body[field] === undefined || body[field] === null) return
  const problem = 'Conversations are not kept here. Send the whole conversation in messages, without thread.'
  throw new ServiceError('unsupported_parameter', { param: field, words: { problem } })
}

/** The cause of an error as Anthropic's SDK reads it: its own code where it has one for that, ours otherwise. */
export function errorCodeOf(code: string, param: string | null): string {
  return code === 'unsupported_parameter' && param === field ? threadCode : code
}
