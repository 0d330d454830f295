import type { Conversation } from '../domain/conversation.ts'
import { itemNotFound, ServiceError } from '../domain/errors.ts'

/**
 * Rejects a request that only the provider's own format can serve: references to data stored elsewhere, and features
 * that other formats cannot express. Called when a request is translated, never when it is relayed (contract 11.1).
 * Hints and hosted tools that clients send by habit are left out by the writers instead (contract 11.5).
 * @throws ServiceError `previous_response_not_found`, `conversation_not_found`, `item_not_found`,
 * `unsupported_parameter`
 */
export function assertTranslatable(conversation: Conversation): void {
  const { previousResponseId, conversationId, references, untranslatable } = conversation.hints
  if (previousResponseId !== undefined) {
    throw new ServiceError('previous_response_not_found', { param: 'previous_response_id' })
  }
  if (conversationId !== undefined) throw new ServiceError('conversation_not_found', { param: 'conversation' })
  if (references !== undefined && references.length > 0) throw itemNotFound(references[0])
  const field = untranslatable?.[0]
  if (field !== undefined) {
    throw unsupported(field, `${field} is not supported by the backends of this profile. Send the request without it.`)
  }
}

/** The error for something the backend's format cannot express; `problem` is a full sentence. */
export function unsupported(param: string, problem: string): ServiceError {
  return new ServiceError('unsupported_parameter', { param, words: { problem } })
}
