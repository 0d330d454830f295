import type { Conversation, JsonObject } from '../domain/conversation.ts'
import { invalidRequest } from '../domain/errors.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { refuseError } from './error-event.ts'
import { isArray, requiredString, wrongType } from './fields.ts'
import type { AnswerReader, Format } from './format.ts'
import { openaiManners } from './openai/manners.ts'
import { readUsage } from './openai-chat/usage.ts'
import type { RelayRules } from './relay.ts'

/**
 * Embeddings, as OpenAI defined them and most providers speak them. A body is relayed with its model changed and comes
 * back whole: there is nothing to translate it to, and it is never streamed.
 */
export const openaiEmbeddings: Format = {
  id: 'openai-embeddings',
  path: '/embeddings',
  manners: openaiManners,
  upstreamPath: () => '/embeddings',
  readRequest,
  writeRequest: () => neverTranslated(),
  readAnswer: () => new EmbeddingsReader(),
  writeAnswer: () => neverTranslated(),
}

/** Embeddings, relayed: nothing is changed but what is in every format, and nothing is streamed. */
export const openaiEmbeddingsRelay: RelayRules = {}

/** As little of it as the service must know. @throws ServiceError `invalid_request` with `param` */
function readRequest(body: JsonObject): Conversation {
  const profile = requiredString(body, 'model')
  const { input } = body
  if (typeof input !== 'string' && !isArray(input)) throw wrongType('input', 'a string or an array')
  // No vectors are no answer: a provider that takes this would be held to have failed, and be asked by nobody for a while.
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
    refuseError(body)
    const { data } = body
    if (!isArray(data) || data.length === 0) throw new UpstreamError('broken')
    this.finished = true
    const usage = readUsage(body['usage'])
    const finish = { type: 'finish', reason: 'stop' } as const
    return usage === undefined ? [finish] : [{ type: 'usage', usage }, finish]
  }
}

/** Backends of both kinds never stand in one profile, so whoever gets here has a bug. */
function neverTranslated(): never {
  throw new Error('embeddings are relayed and never translated')
}
