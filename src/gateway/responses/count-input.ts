import { estimateTokens } from '../../domain/estimate-tokens.ts'
import { frontierId } from '../../domain/profiles.ts'
import { readRequest } from '../../formats/openai-responses/read-request.ts'
import type { Gateway } from '../gateway.ts'
import type { ModelRequest, Principal } from '../ports.ts'
import { refersToStored, type StoredResponses } from './stored-responses.ts'

interface TokenCountDeps {
  readonly gateway: Gateway
  readonly stored: StoredResponses
}

/**
 * Estimates the input tokens of a Responses request with all its references resolved. The request may omit the model;
 * if it names one, the caller must be allowed to use it (contract 12.12).
 * @throws ServiceError as `Gateway.assertAllowed` and `StoredResponses.resolve`
 */
export async function countInput(
  { gateway, stored }: TokenCountDeps,
  principal: Principal,
  request: ModelRequest,
): Promise<number> {
  const conversation = readRequest({ model: frontierId, ...request.body })
  gateway.assertAllowed(principal, conversation, request.format)
  if (!refersToStored(conversation)) return estimateTokens(conversation)
  const full = await stored.resolve(principal.accountId, request, conversation)
  return estimateTokens(readRequest({ model: frontierId, ...full.request.body }))
}
