import { invalidRequest, ServiceError } from '../../domain/errors.ts'
import type { JsonObject } from '../../domain/json.ts'
import { formatById } from '../../formats/formats.ts'
import type { UnadmittedWork } from '../../gateway/auth/unadmitted-work.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { Generations } from '../../gateway/generations/generations.ts'
import type { AnswerSink, ModelRequest, Principal } from '../../gateway/ports.ts'
import { answerCompaction } from '../../gateway/responses/answer-compaction.ts'
import { countInput } from '../../gateway/responses/count-input.ts'
import type { StoredResponses } from '../../gateway/responses/stored-responses.ts'
import { listOf, type LookupDeps, lookupRoute, principalOf, queryOf, readPage } from '../lookup-route.ts'
import type { Intake } from '../request-intake.ts'
import type { Exchange, ApiRoute } from '../route.ts'
import type { KeyedApi } from './keyed-api.ts'

const root = '/v1/responses/'
/** The shape of stored answers' ids; nothing else is looked up. */
const idShape = /^resp_[0-9A-Za-z]{8,64}$/

/** Dependencies of these endpoints. */
export interface ResponsesApiDeps extends LookupDeps {
  readonly gateway: Gateway
  readonly stored: StoredResponses
  readonly generations: Generations
  readonly keyed: KeyedApi
  readonly intake: Intake
  readonly work: UnadmittedWork
  readonly readRequest: (exchange: Exchange) => Promise<ModelRequest>
  readonly sinkFor: (exchange: Exchange) => AnswerSink
}

/** The endpoints below `/v1/responses/`: stored answers, and operations on a conversation (contract 2.4-2.8). */
export class ResponsesApi {
  readonly #deps: ResponsesApiDeps

  constructor(deps: ResponsesApiDeps) {
    this.#deps = deps
  }

  /** The route for a path and method; undefined if there is none. */
  routeOf(path: string, method: string | undefined): ApiRoute | undefined {
    if (!path.startsWith(root)) return undefined
    const [id = '', what, ...rest] = path.slice(root.length).split('/')
    if (rest.length > 0) return undefined
    if (what === undefined) {
      if (id === 'input_tokens') return this.#looking('POST', (exchange, principal) => this.#count(exchange, principal))
      if (id === 'compact') return this.#compacting()
      if (id === '') return undefined
      const allowed = 'GET, DELETE'
      return method === 'DELETE'
        ? this.#looking('DELETE', (_, principal) => this.#remove(principal, id), allowed)
        : this.#retrieving(id, allowed)
    }
    if (what === 'input_items') {
      return this.#looking('GET', (exchange, principal) => this.#listInput(exchange, principal, id))
    }
    return what === 'cancel' ? this.#looking('POST', (_, principal) => this.#cancel(principal, id)) : undefined
  }

  #looking(
    method: ApiRoute['method'],
    answer: (exchange: Exchange, principal: Principal) => Promise<JsonObject>,
    allowed?: string,
  ): ApiRoute {
    return lookupRoute(this.#deps, method, answer, allowed)
  }

  /** A model writes the summary, so this is admitted and charged like every answer (contract 6.9). */
  #compacting(): ApiRoute {
    const handle = async (exchange: Exchange): Promise<void> => {
      const { gateway, stored, intake, keyed, readRequest, sinkFor } = this.#deps
      const read = await readRequest(exchange)
      const principal = principalOf(exchange)
      if (keyed.hasKey(exchange)) {
        // A key that may not make the request may not retry it (contract 39.2).
        gateway.assertAllowed(principal, formatById(read.format).readRequest(read.body), read.format)
        return keyed.compact(exchange, read, (request, sink) =>
          answerCompaction({ gateway, stored }, principal, request, sink),
        )
      }
      const held = await intake.answerUntilClosed(exchange, principal, read)
      await answerCompaction({ gateway, stored }, principal, { ...read, held }, sinkFor(exchange))
    }
    return { method: 'POST', access: 'key', gated: true, handle }
  }

  #retrieving(id: string, allowed: string): ApiRoute {
    const whole = this.#looking('GET', (_, principal) => this.#retrieve(principal, id), allowed)
    const handle = (exchange: Exchange): void | Promise<void> =>
      queryOf(exchange.request.url).get('stream') === 'true' ? this.#resume(exchange, id) : whole.handle(exchange)
    return { ...whole, handle }
  }

  /** A response that is complete, or one that runs in the background. */
  async #retrieve({ accountId }: Principal, id: string): Promise<JsonObject> {
    const { stored, work, generations } = this.#deps
    try {
      return await stored.find(accountId, known(id), work.begin(accountId))
    } catch (error) {
      if (!isNotFound(error)) throw error
      const generation = await generations.backgrounds.find(accountId, requestIdOf(id))
      if (generation?.isBackground !== true) throw error
      if (generation.state === 'finished') work.begin(accountId).spend(generation.bytes)
      return generations.backgrounds.responseOf(generation)
    }
  }

  /** Continues a stream (contract 39.15). */
  async #resume(exchange: Exchange, id: string): Promise<void> {
    const { uncounted, stored, work, generations, keyed } = this.#deps
    const { accountId } = principalOf(exchange)
    uncounted.take(accountId)
    const generation = await generations.backgrounds.find(accountId, requestIdOf(known(id)))
    if (generation?.format === 'openai-responses' && generation.stream) {
      work.begin(accountId).spend(generation.bytes)
      return keyed.resume(exchange, generation)
    }
    if (generation?.isBackground !== true) await stored.find(accountId, id, work.begin(accountId))
    throw invalidRequest(
      'stream',
      'The events of this response are not stored: they have expired, or it was not created with "stream": true and either "background": true or an Idempotency-Key. Retrieve it without stream.',
    )
  }

  async #remove({ accountId }: Principal, id: string): Promise<JsonObject> {
    const { stored, generations } = this.#deps
    const generation = await generations.backgrounds.find(accountId, requestIdOf(known(id)))
    if (generation?.isBackground === true) {
      await generations.remove(generation, async () => {
        try {
          await stored.remove(accountId, id)
        } catch (error) {
          // It need not have an answer.
          if (!isNotFound(error)) throw error
        }
      })
    } else {
      // First, so that an answer that does not exist yet is not changed (contract 39.22).
      await stored.remove(accountId, id)
      if (generation !== undefined) await generations.removeComplete(generation)
    }
    return { id, object: 'response', deleted: true }
  }

  async #cancel(principal: Principal, id: string): Promise<JsonObject> {
    const { generations } = this.#deps
    const generation = await generations.backgrounds.find(principal.accountId, requestIdOf(known(id)))
    if (generation?.isBackground === true && generation.state !== 'finished') await generations.cancel(generation)
    // One that has ended is unchanged (contract 39.16).
    const response = await this.#retrieve(principal, id)
    if (response['background'] === true) return response
    throw invalidRequest(
      'response_id',
      'Only background responses can be canceled. To stop a response that is not in the background, close its connection.',
    )
  }

  async #listInput({ request }: Exchange, { accountId }: Principal, id: string): Promise<JsonObject> {
    const { limit, order, after } = readPage(request.url)
    const items = await this.#deps.stored.inputOf(accountId, known(id), this.#deps.work.begin(accountId))
    const ordered = order === 'asc' ? items : items.toReversed()
    const start = after === undefined ? 0 : ordered.findIndex((item) => item['id'] === after) + 1
    if (after !== undefined && start === 0)
      throw invalidRequest('after', 'after must be the ID of an item of this response.')
    return listOf(ordered.slice(start, start + limit), start + limit < ordered.length)
  }

  async #count(exchange: Exchange, principal: Principal): Promise<JsonObject> {
    const request = await this.#deps.readRequest(exchange)
    return { object: 'response.input_tokens', input_tokens: await countInput(this.#deps, principal, request) }
  }
}

/** The request that produces a response: its ID is derived from it. */
function requestIdOf(responseId: string): string {
  return responseId.replace(/^resp_/, 'req_')
}

function isNotFound(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'response_not_found'
}

/** @throws ServiceError `response_not_found` for a malformed id */
function known(id: string): string {
  if (!idShape.test(id)) throw new ServiceError('response_not_found')
  return id
}
