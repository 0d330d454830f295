import type { EventLog } from '../../domain/events.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { textBinding, type TextPurpose } from '../../domain/seal-bindings.ts'
import { itemDigest, responseIdFor, type StoredResponse } from '../../domain/stored-responses.ts'
import { isArray } from '../../formats/fields.ts'
import { withIds } from '../../formats/openai-responses/stored-items.ts'
import { patchJson, patchJsonInSteps } from '../../formats/patch-json.ts'
import type { Clock } from '../../runtime/clock.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import type { Sealer } from '../../runtime/sealer.ts'
import { runInTurns, yieldToEventLoop } from '../../runtime/yield-to-event-loop.ts'
import type { Conversations } from './conversations.ts'
import type { ResponseStore } from './response-store.ts'

/**
 * An answer that is not saved within this time is not stored: its reader waits no longer for the last event (contract
 * 12.7).
 */
const saveMs = 5_000

/** Fields that an answer changes if it was not stored as requested, or not added to its conversation. */
type PersistedChanges = Readonly<Record<string, string>>

const notStored = { store: 'false' } as const
const notAdded = { conversation: 'null' } as const

/** What a request continues, and what it brings itself. */
export interface ResolvedReferences {
  readonly previousId: string | undefined
  /** The conversation that the answer is added to. */
  readonly conversationId: string | undefined
  /** Ids of the items before the answer, if it is added to a conversation. */
  readonly knownIds: ReadonlySet<unknown>
  readonly links: number
  readonly bytes: number
  /** The items of this request alone, with references resolved. */
  readonly own: readonly JsonObject[]
}

interface ResponsePersisterOptions {
  readonly store: ResponseStore
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: EventLog
  readonly accountId: string
  readonly requestId: string
  readonly from: ResolvedReferences
  readonly conversations: Conversations
  /** Whether the answer itself is stored; in a conversation it need not be. */
  readonly isStored: boolean
  readonly maxBytes: number
}

/**
 * Stores the answer to one request and adds it to its conversation before its reader learns that it is complete
 * (contract 12.1).
 */
export class ResponsePersister {
  readonly #options: ResponsePersisterOptions
  #persisting: Promise<unknown> = Promise.resolve()
  /** Take back what was persisted. */
  readonly #undos: (() => Promise<unknown>)[] = []

  constructor(options: ResponsePersisterOptions) {
    this.#options = options
  }

  /** Whether the answer itself will be stored. */
  get isStored(): boolean {
    return this.#options.isStored
  }

  /**
   * Adds the request and its answer to the conversation and stores the response object as its reader sees it, as
   * requested. Returns the fields to change if either failed; undefined if the response may be sent unchanged.
   */
  persist(response: JsonObject): Promise<PersistedChanges | undefined> {
    const changes = this.#persist(response)
    this.#persisting = changes.catch(() => {})
    return changes
  }

  /**
   * Takes back what was persisted, and what is being persisted now (contract 6.20, 39.21). Resolves to whether nothing of it can be
   * read. Never rejects.
   */
  async discard(): Promise<boolean> {
    await this.#persisting
    const undos = this.#undos.splice(0)
    if (undos.length === 0) return true
    const undone = Promise.all(undos.map((undo) => undo()))
      .then(() => true)
      .catch((error: unknown) => this.#fail(errorName(error)))
    return (await this.#inTime(undone)) ?? this.#fail('timeout')
  }

  async #persist(response: JsonObject): Promise<PersistedChanges | undefined> {
    const isAdded = await this.#add(response)
    const shown = isAdded ? response : { ...response, conversation: null }
    const isStored = !this.#options.isStored || (await this.#save(shown))
    if (isAdded && isStored) return undefined
    return { ...(!isAdded && notAdded), ...(!isStored && notStored) }
  }

  /** Whether a response or its event is too large to be stored: parsing it to find that out would take long. */
  isTooLarge({ length }: { readonly length: number }): boolean {
    return length > this.#options.maxBytes
  }

  /** The fields to change if the response could not be parsed and nothing was stored. */
  unread(): PersistedChanges {
    const { isStored, from } = this.#options
    return { ...(from.conversationId !== undefined && notAdded), ...(isStored && notStored) }
  }

  /**
   * Adds input and output to the conversation, if the request continues one; false if that failed (contract 13.1,
   * 13.2).
   */
  async #add(response: JsonObject): Promise<boolean> {
    const { accountId, from, requestId, conversations } = this.#options
    const { conversationId } = from
    if (conversationId === undefined) return true
    // If a provider returns the same id twice, the item gets a new one, so that no answer is lost.
    const output = itemsOf(response)
      .filter(isObject)
      .map((item) => (from.knownIds.has(item['id']) ? { ...item, id: '' } : item))
    const items = withIds([...from.own, ...output], responseIdFor(requestId))
    const added = conversations
      .append(accountId, conversationId, items)
      .then((failure) => failure === undefined)
      .catch((error: unknown) => this.#fail(errorName(error)))
    return this.#within(added, () => conversations.takeBack(accountId, conversationId, items))
  }

  async #save(response: JsonObject): Promise<boolean> {
    const { store, accountId, from, maxBytes, requestId, clock } = this.#options
    const id = responseIdFor(requestId)
    const items = itemsOf(response)
    const input = JSON.stringify(from.own)
    await yieldToEventLoop(input)
    const output = JSON.stringify(items)
    await yieldToEventLoop(output)
    const rest = JSON.stringify({ ...response, output: [] })
    const bytes = input.length + output.length
    if (bytes + rest.length > maxBytes) return false
    await yieldToEventLoop(input)
    const sealedInput = this.#seal(id, 'input', input)
    await yieldToEventLoop(input)
    const sealedOutput = this.#seal(id, 'output', output)
    await yieldToEventLoop(output)
    const stored: StoredResponse = {
      id,
      accountId,
      // The conversation already holds what came before.
      previousId: from.conversationId ?? from.previousId,
      createdAtMs: clock.nowMs(),
      links: from.links + 1,
      chainBytes: from.bytes + bytes,
      sealedResponse: this.#seal(id, 'response', rest),
      sealedInput,
      sealedOutput,
    }
    const digests = [...idsOf(items), ...idsOf(from.own)].map((itemId) => itemDigest(accountId, itemId))
    const saved = store.save(stored, digests).catch((error: unknown) => this.#fail(errorName(error)))
    return this.#within(saved, () => store.remove(accountId, id, 0))
  }

  /** Like `persist`, for the bytes of a whole answer: returns them, with changed fields if needed. */
  async persistWhole(bytes: Buffer): Promise<Buffer> {
    if (this.isTooLarge(bytes)) return runInTurns(patchJsonInSteps(bytes, this.unread()))
    const response = JSON.parse(bytes.toString('utf8')) as JsonObject
    const changes = await this.persist(response)
    return changes === undefined ? bytes : patchJson(bytes, changes)
  }

  #seal(id: string, purpose: TextPurpose, text: string): string {
    return this.#options.sealer.seal(textBinding(this.#options.accountId, id, purpose), text)
  }

  /** Anything not done in time counts as failed, and is undone if it completes later. */
  async #within(saved: Promise<boolean>, undo: () => Promise<unknown>): Promise<boolean> {
    const isSaved = await this.#inTime(saved)
    if (isSaved === true) this.#undos.push(undo)
    if (isSaved !== undefined) return isSaved
    // The reader is told that the answer was not stored, so it must not appear later.
    saved.then((isThere) => (isThere ? undo() : undefined)).catch((error: unknown) => this.#fail(errorName(error)))
    return this.#fail('timeout')
  }

  /** Undefined if it takes too long. */
  async #inTime(done: Promise<boolean>): Promise<boolean | undefined> {
    const late = Promise.withResolvers<undefined>()
    const timer = this.#options.clock.after(saveMs, () => late.resolve(undefined))
    const isDone = await Promise.race([done, late.promise])
    timer.cancel()
    return isDone
  }

  #fail(reason: string): false {
    this.#options.log({ event: 'store_failing', reason })
    return false
  }
}

function itemsOf(response: JsonObject): readonly Json[] {
  return isArray(response['output']) ? response['output'] : []
}

function idsOf(items: readonly Json[]): string[] {
  return items.flatMap((item) =>
    isObject(item) && typeof item['id'] === 'string' && item['id'] !== '' ? [item['id']] : [],
  )
}
