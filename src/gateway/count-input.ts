import { readRequest } from '../formats/openai-responses/read-request.ts'
import { estimateTokens } from './estimate-tokens.ts'
import type { ModelRequest } from './ports.ts'
import { refersToStored, type StoredResponses } from './stored-responses.ts'

/** Stands in for the profile, which does not matter for counting. */
const anyModel = 'any'

/**
 * How many tokens a Responses request has, about, with everything that it refers to in place. @throws ServiceError as `StoredResponses.resolve`
 */
export async function countInput(stored: StoredResponses, accountId: string, request: ModelRequest): Promise<number> {
  const conversation = readRequest({ ...request.body, model: anyModel })
  const full = refersToStored(conversation) ? await stored.resolve(accountId, request, conversation) : undefined
  return estimateTokens(full === undefined ? conversation : readRequest({ ...full.request.body, model: anyModel }))
}
