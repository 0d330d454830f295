import { errorMessage } from '../../domain/error-message.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import { isObject, type JsonObject, parseObject } from '../../domain/json.ts'
import type { Links } from '../../domain/links.ts'
import { generationBinding } from '../../domain/seal-bindings.ts'
import { responseIdFor } from '../../domain/stored-responses.ts'
import type { AnswerContext } from '../../formats/format.ts'
import { responseObject } from '../../formats/openai-responses/response-object.ts'
import { dataOfLines } from '../../formats/patch-json.ts'
import type { Sealer } from '../../runtime/sealer.ts'
import { askStore } from '../responses/ask-store.ts'
import type { GenerationChunk, GenerationStore, StoredGeneration } from './generation-store.ts'
import { interrupted } from './stored-feed.ts'

interface BackgroundResponsesDeps {
  readonly store: GenerationStore
  readonly sealer: Sealer
  readonly log: EventLog
  readonly links: Links
}

/** The response objects of responses that run in the background (contract 39.14). */
export class BackgroundResponses {
  readonly #deps: BackgroundResponsesDeps

  constructor(deps: BackgroundResponsesDeps) {
    this.#deps = deps
  }

  /** The generation of a request, if it is still stored. @throws ServiceError `store_unavailable` */
  find(accountId: string, requestId: string): Promise<StoredGeneration | undefined> {
    return askStore(this.#deps.log, () => this.#deps.store.findByRequest(accountId, requestId))
  }

  /** Deletes what is stored of a response. @throws ServiceError `store_unavailable` */
  async remove(accountId: string, requestId: string): Promise<void> {
    await askStore(this.#deps.log, () => this.#deps.store.remove(accountId, requestId))
  }

  /** The response object of a request that was just admitted. */
  queued(context: AnswerContext): JsonObject {
    return responseObject(responseIdFor(context.requestId), context, { status: 'queued', output: [] })
  }

  /** Stores the response object as it is retrieved until its answer is complete. */
  async save(accountId: string, requestId: string, response: JsonObject): Promise<void> {
    const binding = generationBinding(accountId, requestId, 'response')
    await this.#deps.store.setResponse(requestId, this.#deps.sealer.seal(binding, JSON.stringify(response)))
  }

  /** Ends a response that got no answer. `number`: how many chunks of its stream are stored; `rest` ends the stream. */
  async fail(
    { accountId, requestId, number }: Pick<GenerationChunk, 'accountId' | 'requestId' | 'number'>,
    { response, rest, error }: { readonly response: JsonObject; readonly rest: Buffer; readonly error: ServiceError },
  ): Promise<void> {
    const { sealer, store } = this.#deps
    await this.save(accountId, requestId, this.#failed(response, error))
    const binding = generationBinding(accountId, requestId, number)
    const sealed = rest.length === 0 ? undefined : sealer.seal(binding, rest.toString('latin1'))
    const chunk = { accountId, requestId, number, sealed, bytes: rest.length, hasContent: false }
    await store.append({ ...chunk, end: 'interrupted' })
  }

  /** The response object as it is now. @throws ServiceError `store_unavailable` */
  async responseOf(generation: StoredGeneration): Promise<JsonObject> {
    const { accountId, requestId, sealedResponse, state, leaseLeftMs } = generation
    if (sealedResponse === undefined) return this.#unknown(generation)
    const text = this.#deps.sealer.open(generationBinding(accountId, requestId, 'response'), sealedResponse)
    const response = parseObject(text) ?? {}
    // Of an answer that is too large, only the stored response tells whether it is complete.
    if (leaseLeftMs > 0 && (state === 'running' || state === 'too_large')) return { ...response, status: 'in_progress' }
    if (state === 'finished') return (await this.#answerOf(generation)) ?? this.#failed(response, interrupted())
    if (state === 'canceled') return { ...response, status: 'cancelled' }
    return response['status'] === 'failed' ? response : this.#failed(response, interrupted())
  }

  /** Its process died before the response object was stored. */
  #unknown({ requestId, createdAtMs }: StoredGeneration): JsonObject {
    const response = { id: responseIdFor(requestId), object: 'response', created_at: Math.floor(createdAtMs / 1000) }
    return this.#failed({ ...response, background: true, output: [] }, interrupted())
  }

  #failed(response: JsonObject, error: ServiceError): JsonObject {
    const { code } = error
    return { ...response, status: 'failed', error: { code, message: errorMessage(error, this.#deps.links) } }
  }

  /** The response object of a complete answer: the whole answer, or that of the last event that has one. */
  async #answerOf({ accountId, requestId, stream }: StoredGeneration): Promise<JsonObject | undefined> {
    const { store, sealer, log } = this.#deps
    const parts: Buffer[] = []
    for (;;) {
      const news = await askStore(log, () => store.read(accountId, requestId, parts.length))
      if (news === undefined || news.chunks.length === 0) break
      for (const { number, sealed } of news.chunks) {
        parts.push(Buffer.from(sealer.open(generationBinding(accountId, requestId, number), sealed), 'latin1'))
      }
    }
    const text = Buffer.concat(parts).toString('utf8')
    if (!stream) return parseObject(text)
    for (const block of text.split('\n\n').toReversed()) {
      const response = parseObject(dataOfLines(block.split('\n')))?.['response']
      if (isObject(response)) return response
    }
    return undefined
  }
}
