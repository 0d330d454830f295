import { type Kysely, sql, type Transaction } from 'kysely'
import { responseIdFor, type StoredResponse, type StoredTurn } from '../domain/stored-responses.ts'
import type { ResponseStore } from '../gateway/responses/response-store.ts'
import { compareText } from '../runtime/compare-text.ts'
import { defineStore } from './define-store.ts'
import type { StoredResponseRow, Tables } from './schema/schema.ts'

/** Rows per statement, well below SQLite's limit on bound parameters. */
const rowsPerInsert = 500

/** An answer to save, with the digests of the item ids it can be found by. */
export interface ResponseToSave {
  readonly response: StoredResponse
  readonly itemDigests: readonly string[]
}

/** How many of the oldest answers are deleted per step to make room, and the most steps per answer. */
const rowsPerStep = 5
const maxSteps = 40

/**
 * Saves several answers in one transaction; `maxBytes` is an account's limit for encrypted text. Deletes the account's
 * oldest answers to make room. Returns for each answer whether it was saved: not if there still was no room.
 */
export async function addResponses(
  db: Kysely<Tables>,
  saves: readonly ResponseToSave[],
  maxBytes: number,
): Promise<readonly boolean[]> {
  // Every node locks accounts in the same order.
  const ordered = [...saves.entries()].toSorted(([, a], [, b]) =>
    compareText(a.response.accountId, b.response.accountId),
  )
  return await db.transaction().execute(async (transaction) => {
    const saved: boolean[] = []
    for (const [at, { response, itemDigests }] of ordered) {
      const { accountId, sealedResponse, sealedInput, sealedOutput } = response
      const bytes = sealedResponse.length + sealedInput.length + sealedOutput.length
      const hasRoom = await makeRoom(transaction, accountId, bytes, maxBytes)
      saved[at] = hasRoom
      if (!hasRoom) continue
      await transaction.insertInto('stored_responses').values(rowOf(response)).execute()
      const items = [...new Set(itemDigests)].map((digest) => ({ digest, response_id: response.id }))
      for (let from = 0; from < items.length; from += rowsPerInsert) {
        await transaction
          .insertInto('stored_items')
          .values(items.slice(from, from + rowsPerInsert))
          .execute()
      }
    }
    return saved
  })
}

/**
 * Whether an account has room for this many more bytes, after deleting its oldest answers as needed. Conversations
 * stay: if they alone leave too little room, nothing is deleted (contract 12.9, 13.6).
 */
export async function makeRoom(
  db: Transaction<Tables>,
  accountId: string,
  bytes: number,
  maxBytes: number,
): Promise<boolean> {
  const room = maxBytes - bytes
  for (let step = 0; step <= maxSteps; step += 1) {
    // Changes nothing, but locks the row: several nodes must not fill the same room.
    const stored = await db
      .updateTable('stored_bytes')
      .set((row) => ({ bytes: row.ref('bytes') }))
      .where('account_id', '=', accountId)
      .returning(['bytes', 'conversation_bytes'])
      .executeTakeFirst()
    if ((stored?.conversation_bytes ?? 0) > room) return false
    if ((stored?.bytes ?? 0) <= room) return true
    const oldest = await db
      .selectFrom('stored_responses')
      .select('id')
      .where('account_id', '=', accountId)
      .orderBy('created_at_ms')
      .limit(rowsPerStep)
      .execute()
    const ids = oldest.map(({ id }) => id)
    if (ids.length === 0) return false
    await db.deleteFrom('stored_items').where('response_id', 'in', ids).execute()
    await db.deleteFrom('stored_responses').where('id', 'in', ids).execute()
  }
  return false
}

/** The properties of a stored answer that are not encrypted. */
interface StoredSummary {
  readonly id: string
  readonly previousId: string | undefined
  readonly createdAtMs: number
}

/** Stored answers on either engine, with retention. `close` closes the underlying database. */
export interface ResponseList extends ResponseStore {
  /** An account's answers created after `sinceMs`, newest first; those before the cursor `before` if given. */
  listOf(
    accountId: string,
    sinceMs: number,
    before: Pick<StoredSummary, 'id' | 'createdAtMs'> | undefined,
    limit: number,
  ): Promise<readonly StoredSummary[]>
  /** Deletes at most `limit` of the oldest answers created at or before `timeMs` and returns how many. */
  deleteUntil(timeMs: number, limit: number): Promise<number>
  /** Deletes the answers to these requests, which are not charged (contract 6.20). */
  removeUncharged(requestIds: readonly string[]): Promise<void>
  close(): Promise<void>
}

/** The queries of stored answers that need nothing but the database. */
export const responseQueries = defineStore<Omit<ResponseList, 'save' | 'deleteUntil' | 'close'>>({
  async find(db, accountId, id, sinceMs) {
    const row = await db
      .selectFrom('stored_responses')
      .selectAll()
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('created_at_ms', '>', sinceMs)
      .executeTakeFirst()
    return row === undefined
      ? undefined
      : { ...readTurn(row), accountId: row.account_id, sealedResponse: row.sealed_response }
  },

  async listOf(db, accountId, sinceMs, before, limit) {
    let query = db
      .selectFrom('stored_responses')
      .select(['id', 'previous_id', 'created_at_ms'])
      .where('account_id', '=', accountId)
      .where('created_at_ms', '>', Math.floor(sinceMs))
    if (before !== undefined)
      query = query.where(sql<boolean>`(created_at_ms, id) < (${Math.floor(before.createdAtMs)}, ${before.id})`)
    const rows = await query.orderBy('created_at_ms', 'desc').orderBy('id', 'desc').limit(limit).execute()
    return rows.map((row) => ({
      id: row.id,
      previousId: row.previous_id ?? undefined,
      createdAtMs: row.created_at_ms,
    }))
  },

  async chain(db, accountId, id, sinceMs, maxLinks) {
    const columns = sql.raw('id, previous_id, created_at_ms, links, chain_bytes, sealed_input, sealed_output')
    const { rows } = await sql<ChainRow>`
      with recursive chain (id, previous_id, depth) as (
        select id, previous_id, 1 from stored_responses
          where id = ${id} and account_id = ${accountId} and created_at_ms > ${Math.floor(sinceMs)}
        union all
        select previous.id, previous.previous_id, chain.depth + 1
          from chain join stored_responses as previous on previous.id = chain.previous_id
          where previous.account_id = ${accountId} and previous.created_at_ms > ${Math.floor(sinceMs)}
            and chain.depth < ${maxLinks}
      )
      select ${columns} from (
        select stored_responses.*, chain.depth from chain join stored_responses on stored_responses.id = chain.id
      ) as found order by depth
    `.execute(db)
    return rows.map(readTurn)
  },

  async locations(db, accountId, itemDigests, sinceMs, limit) {
    if (itemDigests.length === 0) return []
    const rows = await db
      .selectFrom('stored_items')
      .innerJoin('stored_responses', 'stored_responses.id', 'stored_items.response_id')
      .select(['stored_items.digest', 'stored_items.response_id', 'stored_responses.created_at_ms'])
      .where('stored_items.digest', 'in', itemDigests)
      .where('stored_responses.account_id', '=', accountId)
      .where('stored_responses.created_at_ms', '>', Math.floor(sinceMs))
      .orderBy('stored_responses.created_at_ms', 'desc')
      .orderBy('stored_items.response_id', 'desc')
      .limit(limit)
      .execute()
    return rows.map((row) => ({ digest: row.digest, responseId: row.response_id, createdAtMs: row.created_at_ms }))
  },

  remove(db, accountId, id, sinceMs) {
    return db.transaction().execute(async (transaction) => {
      const removed = await transaction
        .deleteFrom('stored_responses')
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .where('created_at_ms', '>', Math.floor(sinceMs))
        .executeTakeFirstOrThrow()
      if (removed.numDeletedRows === 0n) return false
      await transaction.deleteFrom('stored_items').where('response_id', '=', id).execute()
      return true
    })
  },

  removeUncharged: (db, requestIds) =>
    db.transaction().execute((transaction) => deleteAnswersTo(transaction, requestIds)),
})

/** Deletes the answers to requests. Their items are deleted with them. */
export async function deleteAnswersTo(db: Kysely<Tables>, requestIds: readonly string[]): Promise<void> {
  for (let from = 0; from < requestIds.length; from += rowsPerInsert) {
    const ids = requestIds.slice(from, from + rowsPerInsert).map(responseIdFor)
    await db.deleteFrom('stored_items').where('response_id', 'in', ids).execute()
    await db.deleteFrom('stored_responses').where('id', 'in', ids).execute()
  }
}

type ChainRow = Omit<StoredResponseRow, 'account_id' | 'sealed_response'>

/** Deletes at most `limit` of the oldest answers created at or before `timeMs` and returns how many. */
export function deleteResponsesUntil(db: Kysely<Tables>, timeMs: number, limit: number): Promise<number> {
  return db.transaction().execute(async (transaction) => {
    const old = await transaction
      .selectFrom('stored_responses')
      .select('id')
      .where('created_at_ms', '<=', Math.floor(timeMs))
      .orderBy('created_at_ms')
      .limit(limit)
      .execute()
    if (old.length === 0) return 0
    const ids = old.map(({ id }) => id)
    await transaction.deleteFrom('stored_items').where('response_id', 'in', ids).execute()
    await transaction.deleteFrom('stored_responses').where('id', 'in', ids).execute()
    return ids.length
  })
}

function rowOf(response: StoredResponse): StoredResponseRow {
  return {
    id: response.id,
    account_id: response.accountId,
    previous_id: response.previousId ?? null,
    created_at_ms: Math.floor(response.createdAtMs),
    links: response.links,
    chain_bytes: response.chainBytes,
    sealed_response: response.sealedResponse,
    sealed_input: response.sealedInput,
    sealed_output: response.sealedOutput,
  }
}

function readTurn(row: ChainRow): StoredTurn {
  return {
    id: row.id,
    previousId: row.previous_id ?? undefined,
    createdAtMs: row.created_at_ms,
    links: row.links,
    chainBytes: row.chain_bytes,
    sealedInput: row.sealed_input,
    sealedOutput: row.sealed_output,
  }
}
