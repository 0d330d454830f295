import type { Conversation } from '../domain/conversation.ts'
import { invalidRequest } from '../domain/errors.ts'
import { type Json, type JsonObject, objectOf } from '../domain/json.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { errorObjects } from './answer-faults.ts'
import { throwError } from './error-event.ts'
import { isArray, requiredString, wrongType } from './fields.ts'
import type { AnswerReader, Format } from './format.ts'
import { readUsage } from './openai-chat/usage.ts'
import { openaiConventions } from './openai/client-conventions.ts'
import { checkPosition } from './positions.ts'
import type { RelayRules } from './relay.ts'

/**
 * Embeddings, as defined by OpenAI and used by most providers. A body is relayed with its model changed and the answer
 * comes back whole: there is no other format to translate to, and it is never streamed.
 */
export const openaiEmbeddings: Format = {
  id: 'openai-embeddings',
  path: '/embeddings',
  inputField: 'input',
  conventions: openaiConventions,
  upstreamPath: () => '/embeddings',
  readRequest,
  writeRequest: () => neverTranslated(),
  readAnswer: () => new EmbeddingsReader(),
  writeAnswer: () => neverTranslated(),
}

/** Relay rules of embeddings: only the changes common to every format, and no streaming. */
export const openaiEmbeddingsRelay: RelayRules = {}

/** Reads only the fields that the service needs. @throws ServiceError `invalid_request` with `param` */
function readRequest(body: JsonObject): Conversation {
  const profile = requiredString(body, 'model')
  const { input } = body
  if (typeof input !== 'string' && !isArray(input)) throw wrongType('input', 'a string or an array')
  // Some providers answer an empty input without vectors, which would count as their failure.
  if (isArray(input) && input.length === 0) throw invalidRequest('input', 'input is empty. Give at least one text.')
  return { profile, stream: false, turns: [], tools: [], sampling: {}, streamUsage: false, hints: {} }
}

class EmbeddingsReader implements AnswerReader {
  finished = false
  readonly lastData = undefined

  readEvent(): never {
    throw new UpstreamError('broken')
  }

  readWhole(body: JsonObject): ReturnType<AnswerReader['readWhole']> {
    throwError(body)
    const { data } = body
    for (const { index } of errorObjects(data)) checkPosition(index)
    if (!isArray(data) || data.length === 0 || !data.every(hasVector)) throw new UpstreamError('broken')
    this.finished = true
    const usage = readUsage(body['usage'])
    const finish = { type: 'finish', reason: 'stop' } as const
    return usage === undefined ? [finish] : [{ type: 'usage', usage }, finish]
  }
}

/** A vector is a list of numbers, or one text in base64; its numbers are not inspected. */
function hasVector(entry: Json): boolean {
  const { embedding } = objectOf(entry)
  return (isArray(embedding) || typeof embedding === 'string') && embedding.length > 0
}

/** A profile never mixes embeddings and conversation backends, so reaching this is a bug. */
function neverTranslated(): never {
  throw new Error('embeddings are relayed and never translated')
}
