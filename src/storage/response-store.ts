import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import type { StoredResponse } from '../domain/stored-responses.ts'
import {
  addResponses,
  deleteResponsesUntil,
  type ResponseList,
  responseQueries,
  type ResponseToSave,
} from './responses.ts'
import type { Tables } from './schema/schema.ts'

/** Maximum bytes per transaction, because a transaction blocks the event loop on SQLite. */
const maxBatchBytes = 512 * 1024
const maxBatchRows = 32
/** The largest rows that can be deleted at once without a noticeable delay. */
const rowsPerDeletion = 5
/** Maximum bytes waiting to be saved: beyond it an answer is not stored, so that memory does not fill up. */
const maxWaitingBytes = 64 * 1024 * 1024

/** Too many answers are waiting to be saved. */
export class TooManySaves extends Error {
  override readonly name = 'TooManySaves'
}

/**
 * Implements the response port on one open database. Answers that arrive during a save share the next transaction.
 * `maxBytesOfAccount`: encrypted text that one account may store.
 */
export function createResponseStore(db: Kysely<Tables>, maxBytesOfAccount = Infinity): ResponseList {
  const saves = new GroupedSaves(db, maxBytesOfAccount)
  return {
    ...responseQueries(db),
    save: (response, itemDigests) => saves.add({ response, itemDigests }),
    deleteUntil: (timeMs, limit) => deleteInSteps(db, timeMs, limit),
    close: () => db.destroy(),
  }
}

async function deleteInSteps(db: Kysely<Tables>, timeMs: number, limit: number): Promise<number> {
  let deleted = 0
  while (deleted < limit) {
    const step = Math.min(rowsPerDeletion, limit - deleted)
    const removed = await deleteResponsesUntil(db, timeMs, step)
    deleted += removed
    if (removed < step) break
    await nextTurn()
  }
  return deleted
}

interface Waiting {
  readonly save: ResponseToSave
  readonly bytes: number
  readonly resolve: (isSaved: boolean) => void
  readonly reject: (error: unknown) => void
}

/** Saves in one transaction at a time: another writer's lock is awaited once for all answers that have queued up. */
class GroupedSaves {
  readonly #db: Kysely<Tables>
  readonly #maxBytesOfAccount: number
  readonly #waiting: Waiting[] = []
  #waitingBytes = 0
  #isWriting = false

  constructor(db: Kysely<Tables>, maxBytesOfAccount: number) {
    this.#db = db
    this.#maxBytesOfAccount = maxBytesOfAccount
  }

  add(save: ResponseToSave): Promise<boolean> {
    const bytes = bytesOf(save.response)
    if (this.#waitingBytes + bytes > maxWaitingBytes) return Promise.reject(new TooManySaves())
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    this.#waiting.push({ save, bytes, resolve, reject })
    this.#waitingBytes += bytes
    if (!this.#isWriting) void this.#write()
    return promise
  }

  async #write(): Promise<void> {
    this.#isWriting = true
    while (this.#waiting.length > 0) {
      const batch = this.#take()
      try {
        const saves = batch.map(({ save }) => save)
        const saved = await addResponses(this.#db, saves, this.#maxBytesOfAccount)
        for (const [at, { resolve }] of batch.entries()) resolve(saved[at]!)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    this.#isWriting = false
  }

  #take(): Waiting[] {
    let count = 0
    let bytes = 0
    while (count < Math.min(maxBatchRows, this.#waiting.length)) {
      bytes += this.#waiting[count]!.bytes
      if (count > 0 && bytes > maxBatchBytes) break
      count += 1
    }
    const batch = this.#waiting.splice(0, count)
    for (const waiting of batch) this.#waitingBytes -= waiting.bytes
    return batch
  }
}

function bytesOf({ sealedResponse, sealedInput, sealedOutput }: StoredResponse): number {
  return sealedResponse.length + sealedInput.length + sealedOutput.length
}
