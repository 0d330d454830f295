import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import type { StoredResponse } from '../domain/stored-responses.ts'
import { GroupedWrites } from './grouped-writes.ts'
import {
  addResponses,
  deleteResponsesUntil,
  type ResponseList,
  responseQueries,
  type ResponseToSave,
} from './responses.ts'
import type { Tables } from './schema/schema.ts'

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
  const saves = new GroupedWrites<ResponseToSave, boolean>({
    write: (batch) => addResponses(db, batch, maxBytesOfAccount),
    bytesOf: ({ response }) => bytesOf(response),
    maxItems: maxBatchRows,
    maxBytes: maxBatchBytes,
  })
  const save = (response: ResponseToSave['response'], itemDigests: ResponseToSave['itemDigests']): Promise<boolean> =>
    saves.waitingBytes + bytesOf(response) > maxWaitingBytes
      ? Promise.reject(new TooManySaves())
      : saves.add({ response, itemDigests })
  return {
    ...responseQueries(db),
    save,
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

function bytesOf({ sealedResponse, sealedInput, sealedOutput }: StoredResponse): number {
  return sealedResponse.length + sealedInput.length + sealedOutput.length
}
