import type { Conversation } from '../../domain/conversation.ts'
import { invalidRequest, itemNotFound, ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { StoredTurn } from '../../domain/stored-responses.ts'
import type { Formats } from '../../formats/format.ts'
import { eitherOne } from '../../formats/openai-responses/read-request.ts'
import { inputItems, replayed, withIds } from '../../formats/openai-responses/stored-items.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Sealer } from '../../runtime/sealer.ts'
import { yieldToEventLoop } from '../../runtime/yield-to-event-loop.ts'
import type { RequestWork } from '../auth/unadmitted-work.ts'
import type { ModelRequest } from '../ports.ts'
import { rewriteRequest } from '../rewrite-request.ts'
import { askStore } from './ask-store.ts'
import { type Compacted, openCompaction, sealCompaction } from './compaction.ts'
import type { Conversations } from './conversations.ts'
import { readItems, readObject } from './encrypted-texts.ts'
import { findItems, maxReferences } from './referenced-items.ts'
import { type ResolvedReferences, ResponsePersister } from './response-persister.ts'
import type { ResponseStore } from './response-store.ts'

/** Stored answers that one request's item references may decrypt, as a multiple of the largest body. */
const openedBodies = 4
/** The longest chain of answers that one request may continue (contract 12.8). */
const maxLinks = 1_000

export interface StoredResponsesDeps {
  readonly formats: Formats
  readonly store: ResponseStore
  readonly conversations: Conversations
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: EventLog
  /** How long answers are stored; 0 disables storing. */
  readonly retentionMs: number
  /** The largest answer that is stored, and the largest conversation that a request may continue, bytes of JSON. */
  readonly maxBytes: number
}

/**
 * Whether a request references something that only we can resolve: a stored answer, item, or conversation, or a
 * compaction.
 */
export function refersToStored({ hints }: Conversation): boolean {
  const { previousResponseId, conversationId, references, compactions } = hints
  return (
    previousResponseId !== undefined || conversationId !== undefined || references !== undefined || compactions === true
  )
}

const nothingBefore = {
  previousId: undefined,
  conversationId: undefined,
  knownIds: new Set(),
  links: 0,
  bytes: 0,
} as const

/**
 * Answers that every key of the account can continue and retrieve (contract 3.19, 12.1). Answers of other accounts do
 * not exist here.
 */
export class StoredResponses {
  readonly #deps: StoredResponsesDeps

  constructor(deps: StoredResponsesDeps) {
    this.#deps = deps
  }

  /** Persists the answer or adds it to its conversation; undefined if neither is requested. */
  persister(
    accountId: string,
    request: ModelRequest,
    conversation: Conversation,
    resolved?: ResolvedReferences,
  ): ResponsePersister | undefined {
    const { formats, retentionMs, maxBytes } = this.#deps
    if (retentionMs === 0 || formats(request.format).storesAnswers !== true) return undefined
    const isStored = conversation.hints.store !== false
    if (!isStored && resolved?.conversationId === undefined) return undefined
    const from = resolved ?? { ...nothingBefore, own: inputItems(request.body['input']) }
    return new ResponsePersister({ ...this.#deps, accountId, requestId: request.id, from, maxBytes, isStored })
  }

  /**
   * Resolves all references, so that any backend can answer, whatever its format.
   * @throws ServiceError `previous_response_not_found`, `conversation_not_found`, `item_not_found`,
   * `invalid_request`, `store_unavailable`
   */
  async resolve(
    accountId: string,
    request: ModelRequest,
    { hints }: Conversation,
  ): Promise<{ readonly request: ModelRequest; readonly resolved: ResolvedReferences }> {
    const { previousResponseId, conversationId, references = [] } = hints
    if (conversationId !== undefined && request.previousResponseId !== undefined) throw eitherOne()
    const before = await this.#before(accountId, hints, request.work)
    const { items: input, ids, bytes, links } = before
    const isInConversation = conversationId !== undefined
    const unresolved = isInConversation ? references.filter((id) => !ids.has(id)) : references
    const found = await this.#items(accountId, unresolved, request.work)
    const own: JsonObject[] = []
    for (const item of inputItems(request.body['input'])) {
      const { type, id } = item
      const stored = type === 'item_reference' && typeof id === 'string' ? found.get(id) : undefined
      // A conversation holds each id once, whether it was sent as a reference or as a whole item.
      const isOnce = stored !== undefined || (isInConversation && typeof id === 'string')
      if (isOnce && ids.has(id)) continue
      if (isOnce) ids.add(id)
      own.push(stored ?? item)
      if (stored !== undefined) input.push(...this.#readable(accountId, [stored]))
      else if (type === 'compaction') input.push(...openCompaction(this.#deps.sealer, accountId, item))
      else input.push(item)
    }
    const param = isInConversation ? 'conversation' : 'previous_response_id'
    return {
      request: await this.#rewritten(request, input, param),
      resolved: { previousId: previousResponseId, conversationId, knownIds: ids, links, bytes, own },
    }
  }

  /** Everything before the input, and the ids of its items. */
  async #before(
    accountId: string,
    { previousResponseId, conversationId }: Conversation['hints'],
    work: RequestWork | undefined,
  ): Promise<{ items: JsonObject[]; ids: Set<unknown>; bytes: number; links: number }> {
    // Earlier items are not repeated: a call that appeared twice would have duplicate ids.
    const before = { items: [] as JsonObject[], ids: new Set<unknown>(), bytes: 0, links: 0 }
    if (conversationId !== undefined) {
      const items = await this.#deps.conversations.itemsOf(accountId, conversationId, work)
      before.items.push(...this.#readable(accountId, items))
      for (const item of items) before.ids.add(item['id'])
    }
    if (previousResponseId === undefined) return before
    const chain = await this.#chain(accountId, previousResponseId)
    for (const { sealedInput, sealedOutput } of chain) work?.spend(sealedInput.length + sealedOutput.length)
    before.bytes = chain.at(-1)!.chainBytes
    before.links = chain.length
    for (const turn of chain) {
      const input = await readItems(this.#deps, accountId, turn.id, 'input', turn.sealedInput)
      const output = await readItems(this.#deps, accountId, turn.id, 'output', turn.sealedOutput)
      before.items.push(...this.#readable(accountId, input), ...replayed(output))
      for (const item of [...withIds(input, turn.id), ...output]) before.ids.add(item['id'])
      await yieldToEventLoop(turn.sealedInput)
    }
    return before
  }

  /**
   * The response object as its caller saw it (contract 12.10).
   * @throws ServiceError `response_not_found`, `store_unavailable`; errors of `work`
   */
  async find(accountId: string, id: string, work?: RequestWork): Promise<JsonObject> {
    const stored = await this.#ask(() => this.#deps.store.find(accountId, id, this.#sinceMs()))
    if (stored === undefined) throw new ServiceError('response_not_found')
    work?.spend(stored.sealedResponse.length + stored.sealedOutput.length)
    const response = await readObject(this.#deps, accountId, id, 'response', stored.sealedResponse)
    return { ...response, output: await readItems(this.#deps, accountId, id, 'output', stored.sealedOutput) }
  }

  /** The input of an answer, every item with an id. @throws ServiceError as `find` */
  async inputOf(accountId: string, id: string, work?: RequestWork): Promise<readonly JsonObject[]> {
    const stored = await this.#ask(() => this.#deps.store.find(accountId, id, this.#sinceMs()))
    if (stored === undefined) throw new ServiceError('response_not_found')
    work?.spend(stored.sealedInput.length)
    return withIds(await readItems(this.#deps, accountId, id, 'input', stored.sealedInput), id)
  }

  /** Deletes an answer and its items. @throws ServiceError as `find` */
  async remove(accountId: string, id: string): Promise<void> {
    const isGone = await this.#ask(() => this.#deps.store.remove(accountId, id, this.#sinceMs()))
    if (!isGone) throw new ServiceError('response_not_found')
  }

  /** The opaque text of a compaction for this account. */
  seal(accountId: string, compacted: Compacted): string {
    return sealCompaction(this.#deps.sealer, accountId, compacted)
  }

  async #chain(accountId: string, id: string): Promise<readonly StoredTurn[]> {
    const { store, maxBytes } = this.#deps
    const turns = await this.#ask(() => store.chain(accountId, id, this.#sinceMs(), maxLinks))
    const [last] = turns
    if (last !== undefined && (last.links >= maxLinks || last.chainBytes > maxBytes)) {
      throw tooLong(maxBytes, 'previous_response_id')
    }
    const first = turns.at(-1)?.previousId
    if (first?.startsWith('conv_') === true) throw inConversation(first)
    // A missing answer invalidates those that continue it: half a conversation would be answered as if it were
    // complete.
    if (last === undefined || turns.at(-1)!.previousId !== undefined) {
      throw new ServiceError('previous_response_not_found', { param: 'previous_response_id' })
    }
    return turns.toReversed()
  }

  async #items(
    accountId: string,
    ids: readonly string[],
    work: RequestWork | undefined,
  ): Promise<ReadonlyMap<string, JsonObject>> {
    if (ids.length === 0) return new Map()
    if (ids.length > maxReferences) {
      throw invalidRequest(
        'input',
        `input has more than ${maxReferences} item_reference items. Send the items themselves.`,
      )
    }
    const parts = { ...this.#deps, maxOpenedBytes: openedBodies * this.#deps.maxBytes }
    const found = await this.#ask(() => findItems(parts, accountId, new Set(ids), this.#sinceMs(), work))
    const missing = ids.find((id) => !found.has(id))
    if (missing !== undefined) throw itemNotFound(missing)
    return found
  }

  /** The items for replay, with our compactions opened. */
  #readable(accountId: string, items: readonly JsonObject[]): readonly JsonObject[] {
    const open = items.flatMap((item) =>
      item['type'] === 'compaction' ? openCompaction(this.#deps.sealer, accountId, item) : [item],
    )
    return replayed(open)
  }

  /** The request with the full `input`; all other bytes are unchanged. */
  #rewritten(request: ModelRequest, input: readonly JsonObject[], param: string): Promise<ModelRequest> {
    const { maxBytes } = this.#deps
    const changes = { input, previous_response_id: undefined, conversation: undefined }
    return rewriteRequest(request, changes, (bytes) => {
      if (bytes > maxBytes) throw tooLong(maxBytes, param)
    })
  }

  /** Answers created at or before this time have expired. */
  #sinceMs(): number {
    return this.#deps.clock.nowMs() - this.#deps.retentionMs
  }

  #ask<Result>(query: () => Promise<Result>): Promise<Result> {
    return askStore(this.#deps.log, query)
  }
}

/** An answer in a conversation cannot be continued without the items before it (contract 13.8). */
function inConversation(id: string): ServiceError {
  return invalidRequest(
    'previous_response_id',
    `This response belongs to the conversation ${id}. Send "conversation": "${id}" instead.`,
  )
}

function tooLong(maxBytes: number, param: string): ServiceError {
  return invalidRequest(
    param,
    `Together with the conversation that it continues, this request is larger than ${Math.floor(maxBytes / 1024 / 1024)} MiB or continues more than ${maxLinks} answers. Compact the conversation, or start a new one.`,
  )
}
