import type { AnswerEvent, Conversation, Usage } from '../domain/conversation.ts'
import { invalidRequest } from '../domain/errors.ts'
import { type Json, type JsonObject, objectOf } from '../domain/json.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { parseAnswer } from './answer-faults.ts'
import { throwError } from './error-event.ts'
import { isArray, requiredString, wrongType } from './fields.ts'
import type { AnswerReader, Format } from './format.ts'
import { isWholeObject, objectsOf } from './json-parts.ts'
import { patchMembers } from './json-scan.ts'
import { ShapeCount } from './json-shapes.ts'
import { readUsage } from './openai-chat/usage.ts'
import { openaiConventions } from './openai/client-conventions.ts'
import { scanMembers } from './patch-json.ts'
import { checkPosition } from './positions.ts'
import type { RelayRules } from './relay.ts'

/** More than 50,000 numbers. */
const maxVectorBytes = 1024 * 1024
const bytesPerStep = 1024 * 1024

/**
 * Embeddings, as defined by OpenAI and used by most providers. A body is relayed with its model changed and the answer
 * comes back whole: there is no other format to translate to, and it is never streamed (contract 2.39).
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
  if (isArray(input) && input.length === 0) throw invalidRequest('input', 'input is empty. Send at least one text.')
  return { profile, stream: false, turns: [], tools: [], sampling: {}, streamUsage: false, hints: {} }
}

class EmbeddingsReader implements AnswerReader {
  finished = false
  /** Of a large answer: the body without its vectors. */
  lastData: JsonObject | undefined

  readEvent(): never {
    throw new UpstreamError('broken')
  }

  readWhole(body: JsonObject): ReturnType<AnswerReader['readWhole']> {
    throwError(body)
    const { data } = body
    if (!isArray(data) || data.length === 0) throw new UpstreamError('broken')
    for (const entry of data) checkVector(entry)
    return this.#end(body)
  }

  /** Millions of numbers take long to parse, so each vector is parsed alone and dropped. */
  *readLarge(bytes: Buffer): Generator<void, readonly AnswerEvent[]> {
    const members = yield* scanMembers(bytes)
    const [list, other] = members.filter(({ key }) => key === 'data')
    if (list === undefined || other !== undefined || !isWholeObject(bytes, members)) throw new UpstreamError('broken')
    const body = parseAnswer(patchMembers(bytes, members, { data: '[]' }).toString('utf8'))
    this.lastData = body
    throwError(body)
    yield
    const shapes = new ShapeCount()
    let parsed = 0
    let count = 0
    for (const vector of objectsOf(bytes, list.valueStart, list.valueEnd)) {
      count += 1
      parsed += vector.length
      if (vector.length > maxVectorBytes) throw new UpstreamError('broken')
      const text = vector.toString('utf8')
      shapes.add(text)
      if (shapes.isTooHigh) throw new UpstreamError('broken')
      checkVector(parseAnswer(text))
      if (parsed < bytesPerStep) continue
      parsed = 0
      yield
    }
    if (count === 0) throw new UpstreamError('broken')
    return this.#end(body)
  }

  usageIn({ usage }: JsonObject): Usage | undefined {
    return readUsage(usage)
  }

  #end(body: JsonObject): readonly AnswerEvent[] {
    this.finished = true
    const usage = this.usageIn(body)
    const finish = { type: 'finish', reason: 'stop' } as const
    return usage === undefined ? [finish] : [{ type: 'usage', usage }, finish]
  }
}

/** A vector is a list of numbers, or one text in base64; its numbers are not inspected. @throws UpstreamError `broken` */
function checkVector(entry: Json): void {
  const { embedding, index } = objectOf(entry)
  checkPosition(index)
  if ((!isArray(embedding) && typeof embedding !== 'string') || embedding.length === 0)
    throw new UpstreamError('broken')
}

/** A profile never mixes embeddings and conversation backends, so reaching this is a bug. */
function neverTranslated(): never {
  throw new Error('embeddings are relayed and never translated')
}
