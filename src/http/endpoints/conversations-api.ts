import type { IncomingMessage } from 'node:http'
import { invalidRequest, ServiceError } from '../../domain/errors.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { frontierId } from '../../domain/profiles.ts'
import { responseIdFor } from '../../domain/stored-responses.ts'
import { isArray } from '../../formats/fields.ts'
import { readRequest } from '../../formats/openai-responses/read-request.ts'
import { inputItems, withIds } from '../../formats/openai-responses/stored-items.ts'
import type { UnadmittedWork } from '../../gateway/auth/unadmitted-work.ts'
import type { Conversations } from '../../gateway/responses/conversations.ts'
import { listOf, type LookupDeps, lookupRoute, principalOf, readPage } from '../lookup-route.ts'
import type { Exchange, ApiRoute } from '../route.ts'

const root = '/v1/conversations'
/** Only ids of this shape are looked up. */
const idShape = /^conv_[0-9A-Za-z]{8,64}$/
const maxItemIdChars = 256
/** Items per request, as in OpenAI's API (contract 13.5). */
const maxNewItems = 20

export interface ConversationsApiDeps extends LookupDeps {
  readonly conversations: Conversations
  readonly work: UnadmittedWork
  readonly readBody: (exchange: Exchange) => Promise<JsonObject>
}

type Answer = (exchange: Exchange, accountId: string) => Promise<JsonObject>

/** The endpoints below `/v1/conversations`, as in OpenAI's API (contract 2.9, 13). */
export class ConversationsApi {
  readonly #deps: ConversationsApiDeps

  constructor(deps: ConversationsApiDeps) {
    this.#deps = deps
  }

  /** The route for a path and method; undefined if there is none. */
  routeOf(path: string, method: string | undefined): ApiRoute | undefined {
    if (path === root) return this.#route({ POST: (exchange, accountId) => this.#create(exchange, accountId) }, method)
    if (!path.startsWith(`${root}/`)) return undefined
    const [id = '', what, itemId, ...rest] = path.slice(root.length + 1).split('/')
    if (id === '' || rest.length > 0 || (what !== undefined && what !== 'items') || itemId === '') return undefined
    const { conversations } = this.#deps
    if (what === undefined) {
      const answers = {
        GET: (_: Exchange, accountId: string) => conversations.find(accountId, known(id)),
        POST: (exchange: Exchange, accountId: string) => this.#update(exchange, accountId, id),
        DELETE: (_: Exchange, accountId: string) => this.#remove(accountId, id),
      }
      return this.#route(answers, method)
    }
    if (itemId === undefined) {
      const answers = {
        GET: (exchange: Exchange, accountId: string) => this.#list(exchange, accountId, id),
        POST: (exchange: Exchange, accountId: string) => this.#add(exchange, accountId, id),
      }
      return this.#route(answers, method)
    }
    const answers = {
      GET: (_: Exchange, accountId: string) =>
        conversations.findItem(accountId, known(id), knownItem(itemId), this.#deps.work.begin(accountId)),
      DELETE: (_: Exchange, accountId: string) => conversations.removeItem(accountId, known(id), knownItem(itemId)),
    }
    return this.#route(answers, method)
  }

  #route(answers: Readonly<Partial<Record<'GET' | 'POST' | 'DELETE', Answer>>>, method: string | undefined): ApiRoute {
    const methods = Object.keys(answers) as (keyof typeof answers)[]
    const served = methods.find((name) => name === method) ?? methods[0]!
    const answer = (exchange: Exchange): Promise<JsonObject> =>
      answers[served]!(exchange, principalOf(exchange).accountId)
    return lookupRoute(this.#deps, served, answer, methods.join(', '))
  }

  async #create(exchange: Exchange, accountId: string): Promise<JsonObject> {
    const body = hasBody(exchange.request) ? await this.#deps.readBody(exchange) : {}
    const items = newItems(body['items'] ?? [], exchange.requestId)
    return this.#deps.conversations.create(accountId, items, body['metadata'])
  }

  async #update(exchange: Exchange, accountId: string, id: string): Promise<JsonObject> {
    const { metadata } = await this.#deps.readBody(exchange)
    return this.#deps.conversations.update(accountId, known(id), metadata)
  }

  async #remove(accountId: string, id: string): Promise<JsonObject> {
    await this.#deps.conversations.remove(accountId, known(id))
    return { id, object: 'conversation.deleted', deleted: true }
  }

  async #add(exchange: Exchange, accountId: string, id: string): Promise<JsonObject> {
    const body = await this.#deps.readBody(exchange)
    const items = newItems(body['items'], exchange.requestId)
    await this.#deps.conversations.add(accountId, known(id), items)
    return listOf(items, false)
  }

  async #list({ request }: Exchange, accountId: string, id: string): Promise<JsonObject> {
    const page = readPage(request.url)
    const work = this.#deps.work.begin(accountId)
    // One extra item shows whether there are more.
    const items = await this.#deps.conversations.list(accountId, known(id), { ...page, limit: page.limit + 1 }, work)
    return listOf(items.slice(0, page.limit), items.length > page.limit)
  }
}

/** @throws ServiceError `conversation_not_found` for a malformed id */
function known(id: string): string {
  if (!idShape.test(id)) throw new ServiceError('conversation_not_found')
  return id
}

/** Decodes a caller-chosen item id from a path. @throws ServiceError `conversation_item_not_found` */
function knownItem(encoded: string): string {
  try {
    const id = decodeURIComponent(encoded)
    if (id.length <= maxItemIdChars) return id
  } catch {
    // A value that cannot be decoded is not an id.
  }
  throw new ServiceError('conversation_item_not_found')
}

/** OpenAI's clients send no body if no field is set. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** The items of a request, complete and each with an id. @throws ServiceError `invalid_request` */
function newItems(given: Json | undefined, requestId: string): readonly JsonObject[] {
  if (!isArray(given)) throw invalidRequest('items', 'items must be an array.')
  if (given.length > maxNewItems) {
    throw invalidRequest('items', `items has more than ${maxNewItems} items. Add them in several requests.`)
  }
  try {
    const items = inputItems(given)
    for (const [index, { type, id }] of items.entries()) {
      if (type === 'item_reference')
        throw invalidRequest(`input[${index}]`, `input[${index}] must be an item, not a reference to one.`)
      if (typeof id === 'string' && id.length > maxItemIdChars) {
        throw invalidRequest(`input[${index}].id`, `input[${index}].id is longer than ${maxItemIdChars} characters.`)
      }
    }
    // An item that is not valid input would break every later request of the conversation.
    readRequest({ model: frontierId, input: given })
    return withIds(items, responseIdFor(requestId))
  } catch (error) {
    throw inOwnWords(error)
  }
}

/** The same error with the field under its name in this endpoint. */
function inOwnWords(error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.code !== 'invalid_request') return error
  const { param = '', words } = error.facts
  const renamed = (text: string): string => text.replace(/\binput\b/, 'items')
  return invalidRequest(renamed(param), renamed(String(words?.['problem'] ?? '')))
}
