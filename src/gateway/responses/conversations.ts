import type { NewConversationItem, StoredConversation } from '../../domain/conversations.ts'
import { invalidRequest, ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { textBinding } from '../../domain/seal-bindings.ts'
import { itemDigest } from '../../domain/stored-responses.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Sealer } from '../../runtime/sealer.ts'
import { yieldToEventLoop, nextEventLoopTurn } from '../../runtime/yield-to-event-loop.ts'
import type { RequestWork } from '../auth/unadmitted-work.ts'
import { askStore } from './ask-store.ts'
import type { AppendOptions, AppendFailure, ConversationStore, ItemPage } from './conversation-store.ts'
import { readObject } from './encrypted-texts.ts'

/** Items in one conversation (contract 13.5). */
const maxItems = 2_000
/** Items encrypted or decrypted in one turn of the event loop. */
const itemsPerTurn = 100
const maxMetadataPairs = 16
const maxKeyChars = 64
const maxValueChars = 512

export interface ConversationsDeps {
  readonly store: ConversationStore
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: EventLog
  readonly mintId: () => string
  /** How long a conversation is stored after its last use; 0 disables conversations. */
  readonly retentionMs: number
  /** The largest total size of one conversation's items, bytes of JSON. */
  readonly maxBytes: number
}

/**
 * Conversations that callers create and continue by id (contract 13). Each is visible only to the account that
 * created it.
 */
export class Conversations {
  readonly #deps: ConversationsDeps

  constructor(deps: ConversationsDeps) {
    this.#deps = deps
  }

  /**
   * Creates a conversation with these items, each with an id.
   * @throws ServiceError `invalid_request`, `store_unavailable`
   */
  async create(accountId: string, items: readonly JsonObject[], metadata: Json | undefined): Promise<JsonObject> {
    const { store, clock, mintId, retentionMs } = this.#deps
    if (retentionMs === 0) {
      const problem =
        'Conversations are turned off, because this service stores no responses. Send the whole conversation instead.'
      throw new ServiceError('invalid_request', { words: { problem } })
    }
    const checked = checkMetadata(metadata ?? {})
    const id = mintId()
    const nowMs = Math.floor(clock.nowMs())
    const conversation = {
      id,
      accountId,
      createdAtMs: nowMs,
      lastUsedAtMs: nowMs,
      items: 0,
      bytes: 0,
      sealedMetadata: this.#sealMetadata(accountId, id, checked),
    }
    const hasRoom = await this.#ask(() => store.add(conversation))
    if (!hasRoom) throw refused('no_room', this.#deps.maxBytes)
    if (items.length > 0) {
      try {
        await this.add(accountId, id, items)
      } catch (error) {
        await this.#ask(() => store.remove(accountId, id, 0))
        throw error
      }
    }
    return shown(conversation, checked)
  }

  /** @throws ServiceError `conversation_not_found`, `store_unavailable` */
  async find(accountId: string, id: string): Promise<JsonObject> {
    return this.#show(await this.#known(accountId, id))
  }

  /** Replaces the metadata. @throws ServiceError as `find`, and `invalid_request` */
  async update(accountId: string, id: string, metadata: Json | undefined): Promise<JsonObject> {
    if (metadata === undefined)
      throw invalidRequest('metadata', 'metadata is required. Send an object, which replaces the current metadata.')
    const checked = checkMetadata(metadata ?? {})
    const times = { nowMs: this.#deps.clock.nowMs(), sinceMs: this.#sinceMs() }
    const sealed = this.#sealMetadata(accountId, id, checked)
    const updated = await this.#ask(() => this.#deps.store.update(accountId, id, sealed, times))
    if (updated === undefined) throw new ServiceError('conversation_not_found')
    return shown(updated, checked)
  }

  /**
   * Deletes a conversation with its items; stored responses of its turns stay (contract 13.9). @throws ServiceError as
   * `find`
   */
  async remove(accountId: string, id: string): Promise<void> {
    const isGone = await this.#ask(() => this.#deps.store.remove(accountId, id, this.#sinceMs()))
    if (!isGone) throw new ServiceError('conversation_not_found')
  }

  /** Appends items that a caller sent, each with an id. @throws ServiceError as `find`, and `invalid_request` */
  async add(accountId: string, id: string, items: readonly JsonObject[]): Promise<void> {
    const sealed = await this.#sealed(accountId, id, items)
    const failure = await this.#ask(() => this.#deps.store.append(accountId, id, sealed, this.#options(false)))
    if (failure !== undefined) throw refused(failure, this.#deps.maxBytes)
  }

  /**
   * Appends the items of a request and its answer, skipping those that already exist. Returns the reason if it could
   * not. Turns that overlap are appended in the order in which they end (contract 13.3, 13.4).
   * @throws the store's errors
   */
  async append(accountId: string, id: string, items: readonly JsonObject[]): Promise<AppendFailure | undefined> {
    const sealed = await this.#sealed(accountId, id, items)
    return await this.#deps.store.append(accountId, id, sealed, this.#options(true))
  }

  /** Reverts `append`. @throws the store's errors */
  async takeBack(accountId: string, id: string, items: readonly JsonObject[]): Promise<void> {
    await this.#deps.store.removeItems(
      accountId,
      id,
      items.map((item) => digestOf(accountId, item)),
    )
  }

  /**
   * All items, oldest first, for a request that continues the conversation.
   * @throws ServiceError as `find`, with `param` set to `conversation`; errors of `work`
   */
  async itemsOf(accountId: string, id: string, work?: RequestWork): Promise<readonly JsonObject[]> {
    const { items, bytes } = await this.#known(accountId, id, 'conversation')
    work?.spend(bytes)
    if (items === 0) return []
    return (await this.#page(accountId, id, { order: 'asc', limit: maxItems })) ?? []
  }

  /**
   * One page of items.
   * @throws ServiceError as `find`, `invalid_request` if the `after` item does not exist; errors of `work`
   */
  async list(
    accountId: string,
    id: string,
    page: { readonly order: 'asc' | 'desc'; readonly limit: number; readonly after: string | undefined },
    work?: RequestWork,
  ): Promise<readonly JsonObject[]> {
    await this.#known(accountId, id)
    const { order, limit, after } = page
    const afterDigest = after === undefined ? undefined : itemDigest(accountId, after)
    const items = await this.#page(accountId, id, { order, limit, afterDigest }, work)
    if (items === undefined) throw invalidRequest('after', 'after must be the ID of an item of this conversation.')
    return items
  }

  /** One item. @throws ServiceError as `find`, `conversation_item_not_found`; errors of `work` */
  async findItem(accountId: string, id: string, itemId: string, work?: RequestWork): Promise<JsonObject> {
    await this.#known(accountId, id)
    const digest = itemDigest(accountId, itemId)
    const found = await this.#ask(() => this.#deps.store.findItem(accountId, id, digest))
    if (found === undefined) throw new ServiceError('conversation_item_not_found')
    work?.spend(found.sealed.length)
    return readObject(this.#deps, accountId, id, 'item', found.sealed)
  }

  /** Deletes one item; returns the conversation. @throws ServiceError as `findItem` */
  async removeItem(accountId: string, id: string, itemId: string): Promise<JsonObject> {
    const conversation = await this.#known(accountId, id)
    const count = await this.#ask(() => this.#deps.store.removeItems(accountId, id, [itemDigest(accountId, itemId)]))
    if (count === 0) throw new ServiceError('conversation_item_not_found')
    return this.#show(conversation)
  }

  async #page(
    accountId: string,
    id: string,
    page: ItemPage,
    work?: RequestWork,
  ): Promise<readonly JsonObject[] | undefined> {
    const stored = await this.#ask(() => this.#deps.store.listItems(accountId, id, page))
    if (stored === undefined) return undefined
    for (const { sealed } of stored) work?.spend(sealed.length)
    const items: JsonObject[] = []
    for (const { sealed } of stored) {
      items.push(await readObject(this.#deps, accountId, id, 'item', sealed))
      if (items.length % itemsPerTurn === 0) await nextEventLoopTurn()
    }
    return items
  }

  async #sealed(accountId: string, id: string, items: readonly JsonObject[]): Promise<readonly NewConversationItem[]> {
    const sealed: NewConversationItem[] = []
    for (const item of items) {
      const text = JSON.stringify(item)
      if (sealed.length % itemsPerTurn === itemsPerTurn - 1) await nextEventLoopTurn()
      await yieldToEventLoop(text)
      sealed.push({
        digest: digestOf(accountId, item),
        bytes: Buffer.byteLength(text),
        sealed: this.#deps.sealer.seal(textBinding(accountId, id, 'item'), text),
      })
    }
    return sealed
  }

  #sealMetadata(accountId: string, id: string, metadata: JsonObject): string {
    return this.#deps.sealer.seal(textBinding(accountId, id, 'metadata'), JSON.stringify(metadata))
  }

  async #known(accountId: string, id: string, param?: string): Promise<StoredConversation> {
    const found = await this.#ask(() => this.#deps.store.find(accountId, id, this.#sinceMs()))
    if (found === undefined) throw new ServiceError('conversation_not_found', param === undefined ? {} : { param })
    return found
  }

  async #show(conversation: StoredConversation): Promise<JsonObject> {
    const { accountId, id, sealedMetadata } = conversation
    return shown(conversation, await readObject(this.#deps, accountId, id, 'metadata', sealedMetadata))
  }

  #options(skipsDuplicates: boolean): AppendOptions {
    const { clock, maxBytes } = this.#deps
    return { nowMs: clock.nowMs(), sinceMs: this.#sinceMs(), maxItems, maxBytes, skipsDuplicates }
  }

  /** Conversations last used at or before this time have expired (contract 13.7). */
  #sinceMs(): number {
    return this.#deps.clock.nowMs() - this.#deps.retentionMs
  }

  #ask<Result>(query: () => Promise<Result>): Promise<Result> {
    return askStore(this.#deps.log, query)
  }
}

function digestOf(accountId: string, { id }: JsonObject): string {
  if (typeof id !== 'string') throw new Error('an item without an id')
  return itemDigest(accountId, id)
}

/** @throws ServiceError `invalid_request` */
function checkMetadata(metadata: Json): JsonObject {
  const pairs = isObject(metadata) ? Object.entries(metadata) : undefined
  const isFine = pairs?.every(
    ([key, value]) => key.length <= maxKeyChars && typeof value === 'string' && value.length <= maxValueChars,
  )
  if (!isObject(metadata) || isFine !== true || pairs!.length > maxMetadataPairs) {
    throw invalidRequest(
      'metadata',
      `metadata must be an object of at most ${maxMetadataPairs} pairs, with keys of up to ${maxKeyChars} characters and text values of up to ${maxValueChars}.`,
    )
  }
  return metadata
}

function shown({ id, createdAtMs }: StoredConversation, metadata: JsonObject): JsonObject {
  return { id, object: 'conversation', created_at: Math.floor(createdAtMs / 1000), metadata }
}

function refused(failure: AppendFailure, maxBytes: number): ServiceError {
  if (failure === 'not_found') return new ServiceError('conversation_not_found')
  const problems = {
    duplicate: 'The conversation already has an item with this ID. Remove it from the request.',
    full: `A conversation has at most ${maxItems} items and ${Math.floor(maxBytes / 1024 / 1024)} MiB. Create a new one.`,
    no_room: 'The account has reached its limit for stored text. Delete conversations that you no longer need.',
  }
  return invalidRequest('items', problems[failure])
}
