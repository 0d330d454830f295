import { failureName } from '../domain/bugs.ts'
import type { Clock } from '../domain/clock.ts'
import type { Json, JsonObject } from '../domain/conversation.ts'
import type { EventLog } from '../domain/events.ts'
import type { Sealer } from '../domain/sealing.ts'
import { itemDigest, type StoredResponse } from '../domain/stored-responses.ts'
import { isObject } from '../domain/json.ts'
import { isArray } from '../formats/fields.ts'
import { responseIdFor } from '../formats/openai-responses/response-object.ts'
import { restate } from '../formats/restate.ts'
import type { ResponseStore } from './response-store.ts'
import { textBinding, type TextPurpose } from './sealed-texts.ts'
import type { Resolved } from './stored-responses.ts'
import { giveWay } from './turns.ts'

/** An answer that is not saved within this time is not kept: its reader does not wait longer for the last event. */
const saveMs = 5_000

/** What an answer says of itself when it could not be kept. */
export const notStored = { store: 'false' } as const

interface KeepingOf {
  readonly store: ResponseStore
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: EventLog
  readonly accountId: string
  readonly requestId: string
  readonly from: Resolved
  readonly maxBytes: number
}

/** Keeps the answer to one request, before its reader learns that it is complete (contract 2.5). */
export class Keeping {
  readonly #of: KeepingOf

  constructor(of: KeepingOf) {
    this.#of = of
  }

  /** Keeps a response object as its reader sees it; false where it could not be kept, and then nothing of it is. */
  async keep(response: JsonObject): Promise<boolean> {
    const { store, accountId, from, maxBytes, requestId, clock } = this.#of
    const id = responseIdFor(requestId)
    const items = isArray(response['output']) ? response['output'] : []
    const input = JSON.stringify(from.own)
    const output = JSON.stringify(items)
    const rest = JSON.stringify({ ...response, output: [] })
    const bytes = input.length + output.length
    if (bytes + rest.length > maxBytes) return false
    await giveWay(input)
    const sealedInput = this.#seal(id, 'input', input)
    await giveWay(input)
    const sealedOutput = this.#seal(id, 'output', output)
    await giveWay(output)
    const stored: StoredResponse = {
      id,
      accountId,
      previousId: from.previousId,
      createdAtMs: clock.nowMs(),
      links: from.links + 1,
      chainBytes: from.bytes + bytes,
      sealedResponse: this.#seal(id, 'response', rest),
      sealedInput,
      sealedOutput,
    }
    const digests = [...idsOf(items), ...idsOf(from.own)].map((itemId) => itemDigest(accountId, itemId))
    const saved = store.save(stored, digests).catch((error: unknown) => this.#fail(failureName(error)))
    return this.#within(saved, id)
  }

  /** As `keep`, for the bytes of a whole answer: gives them back, as they are or saying that they are not kept. */
  async keepWhole(bytes: Buffer): Promise<Buffer> {
    const response = JSON.parse(bytes.toString('utf8')) as JsonObject
    return (await this.keep(response)) ? bytes : restate(bytes, notStored)
  }

  #seal(id: string, purpose: TextPurpose, text: string): string {
    return this.#of.sealer.seal(textBinding(this.#of.accountId, id, purpose), text)
  }

  async #within(saved: Promise<boolean>, id: string): Promise<boolean> {
    const { store, clock, accountId } = this.#of
    const late = Promise.withResolvers<undefined>()
    const timer = clock.after(saveMs, () => late.resolve(undefined))
    const isSaved = await Promise.race([saved, late.promise])
    timer.cancel()
    if (isSaved !== undefined) return isSaved
    // Its reader is told that it is not kept, so it must not turn up later.
    saved
      .then((isThere) => (isThere ? store.remove(accountId, id, 0) : false))
      .catch((error: unknown) => this.#fail(failureName(error)))
    return this.#fail('timeout')
  }

  #fail(reason: string): false {
    this.#of.log({ event: 'store_failing', reason })
    return false
  }
}

function idsOf(items: readonly Json[]): string[] {
  return items.flatMap((item) =>
    isObject(item) && typeof item['id'] === 'string' && item['id'] !== '' ? [item['id']] : [],
  )
}
