import { type Kysely, type RawBuilder, sql, type SqlBool, type Transaction } from 'kysely'
import type { ClientFormatId } from '../domain/format-id.ts'
import type {
  GenerationChunk,
  GenerationState,
  GenerationStore,
  NewGeneration,
  StoredGeneration,
} from '../gateway/generations/generation-store.ts'
import { StoreUnavailable } from '../runtime/store-unavailable.ts'
import { defineStore } from './define-store.ts'
import { isOnSqlite } from './engine.ts'
import { writeSettlements } from './ledger/settlements.ts'
import { nowOf } from './nodes.ts'
import { deleteAnswersTo } from './responses.ts'
import type { GenerationRow } from './schema/schema-generations.ts'
import type { Tables } from './schema/schema.ts'

/** A generation whose process has not prolonged its lease for this long counts as abandoned (contract 39.9). */
const leaseMs = 10_000
/** Generations and bytes that one account may have stored (contract 30.21, 39.12). */
const maxPerAccount = 10_000
const maxBytesOfAccount = 256 * 1024 * 1024
/** Chunks returned at once, about as many bytes as one answer may have. */
const chunksAtOnce = 500
/** Bound parameters of one statement. */
const idsAtOnce = 500
/** How often a claim reads a generation that other requests are changing. */
const maxTries = 5

/** Stored generations on either engine, with retention and recovery. */
export interface GenerationList extends GenerationStore {
  /** Deletes at most `limit` generations that have ended and expired by `timeMs`; returns how many. */
  deleteExpired(timeMs: number, limit: number): Promise<number>
  /** Those of these requests whose content is stored: they count as delivered, whatever their marks say (contract 39.4). */
  withContent(requestIds: readonly string[]): Promise<readonly string[]>
  /** No process runs any generation: their leases end. */
  abandonAll(): Promise<void>
}

/** The queries that need nothing but the database. */
export const generationQueries = defineStore<Omit<GenerationList, 'append'>>({
  claim,

  async has(db, accountId, keyDigest, timeMs) {
    const row = await db
      .selectFrom('generations')
      .select('request_id')
      .where('account_id', '=', accountId)
      .where('key_digest', '=', keyDigest)
      .where((row) => row.or([row('expires_at_ms', '>', Math.floor(timeMs)), row.not(hasEnded(db))]))
      .executeTakeFirst()
    return row !== undefined
  },

  async findByRequest(db, accountId, requestId) {
    const row = await select(db)
      .where('account_id', '=', accountId)
      .where('request_id', '=', requestId)
      .executeTakeFirst()
    return row === undefined ? undefined : await readRow(db, row)
  },

  async setResponse(db, requestId, sealedResponse) {
    await db
      .updateTable('generations')
      .set({ sealed_response: sealedResponse })
      .where('request_id', '=', requestId)
      .execute()
  },

  async renew(db, requestIds) {
    const rows = await db
      .updateTable('generations')
      .set({ lease_until_ms: leaseEnd(db) })
      .where('request_id', 'in', [...requestIds].toSorted())
      .where('state', 'in', ['running', 'too_large'])
      .returning(['request_id', 'cancel_requested'])
      .execute()
    return rows.flatMap((row) => (row.cancel_requested === 1 ? [row.request_id] : []))
  },

  async read(db, accountId, requestId, from) {
    // The chunks first: a state that is read later may be newer, never older.
    const chunks = await db
      .selectFrom('generation_chunks')
      .select(['number', 'sealed'])
      .where('request_id', '=', requestId)
      .where('account_id', '=', accountId)
      .where('number', '>=', from)
      .orderBy('number')
      .limit(chunksAtOnce)
      .execute()
    const row = await select(db)
      .where('account_id', '=', accountId)
      .where('request_id', '=', requestId)
      .executeTakeFirst()
    return row === undefined ? undefined : { generation: await readRow(db, row), chunks }
  },

  async requestCancel(db, accountId, requestId) {
    await db
      .updateTable('generations')
      .set({ cancel_requested: 1 })
      .where('account_id', '=', accountId)
      .where('request_id', '=', requestId)
      .where('state', 'in', ['running', 'too_large'])
      .execute()
  },

  async endLease(db, requestId) {
    await db
      .updateTable('generations')
      .set({ lease_until_ms: 0 })
      .where('request_id', '=', requestId)
      .where('state', '=', 'too_large')
      .execute()
  },

  dropChunks: (db, requestId) =>
    db.transaction().execute(async (transaction) => {
      await transaction.updateTable('generations').set({ bytes: 0 }).where('request_id', '=', requestId).execute()
      await deleteChunks(transaction, [requestId])
    }),

  remove: (db, accountId, requestId) =>
    db.transaction().execute(async (transaction) => {
      const removed = await transaction
        .deleteFrom('generations')
        .where('account_id', '=', accountId)
        .where('request_id', '=', requestId)
        .executeTakeFirst()
      if (removed.numDeletedRows > 0n) await deleteChunks(transaction, [requestId])
    }),

  deleteExpired: (db, timeMs, limit) =>
    db.transaction().execute(async (transaction) => {
      const old = await transaction
        .selectFrom('generations')
        .select('request_id')
        .where('expires_at_ms', '<=', Math.floor(timeMs))
        .where(hasEnded(db))
        .orderBy('expires_at_ms')
        .limit(limit)
        .execute()
      await deleteEnded(
        transaction,
        old.map((row) => row.request_id),
      )
      return old.length
    }),

  async withContent(db, requestIds) {
    const found: string[] = []
    for (let from = 0; from < requestIds.length; from += idsAtOnce) {
      const rows = await db
        .selectFrom('generations')
        .select('request_id')
        .where('request_id', 'in', requestIds.slice(from, from + idsAtOnce))
        .where('has_content', '=', 1)
        .execute()
      for (const row of rows) found.push(row.request_id)
    }
    return found
  },

  async abandonAll(db) {
    await db.updateTable('generations').set({ lease_until_ms: 0 }).where('state', '=', 'running').execute()
  },
})

/** Appends chunks of different generations in one transaction; returns for each whether its generation took it. */
export async function appendChunks(
  db: Kysely<Tables>,
  chunks: readonly GenerationChunk[],
): Promise<readonly boolean[]> {
  return await db.transaction().execute(async (transaction) => {
    const taken: boolean[] = []
    for (const chunk of chunks) taken.push(await append(transaction, chunk))
    return taken
  })
}

async function append(db: Transaction<Tables>, chunk: GenerationChunk): Promise<boolean> {
  const { accountId, requestId, number, sealed, bytes, head, hasContent, end } = chunk
  const now = nowOf(db)
  let update = db
    .updateTable('generations')
    .set((row) => ({
      lease_until_ms: leaseEnd(db),
      bytes: sql<number>`${row.ref('bytes')} + cast(${bytes} as bigint)`,
      has_content: hasContent ? 1 : 0,
      ...(sealed !== undefined && { chunks: number + 1 }),
      ...(head !== undefined && { head }),
      ...(end !== undefined && { state: end }),
    }))
    .where('request_id', '=', requestId)
    .where('account_id', '=', accountId)
    .where('state', '=', 'running')
    .where('chunks', '=', number)
  if (chunk.onlyIfAbandoned === true) update = update.where('lease_until_ms', '<=', now)
  const updated = await update.executeTakeFirst()
  if (updated.numUpdatedRows === 0n) return false
  if (sealed !== undefined) {
    await db
      .insertInto('generation_chunks')
      .values({ request_id: requestId, number, account_id: accountId, sealed })
      .execute()
  }
  return true
}

async function claim(db: Kysely<Tables>, given: NewGeneration): Promise<StoredGeneration | undefined> {
  for (let tries = 0; tries < maxTries; tries++) {
    const found = await select(db)
      .where('account_id', '=', given.accountId)
      .where('key_digest', '=', given.keyDigest)
      .executeTakeFirst()
    if (found === undefined) {
      if (!(await insert(db, given))) continue
      await makeRoom(db, given.accountId)
      return undefined
    }
    if (found.expires_at_ms <= given.createdAtMs && found.has_ended === 1) {
      await db.transaction().execute((transaction) => deleteEnded(transaction, [found.request_id]))
      continue
    }
    if (found.may_restart === 0 || found.body_digest !== given.bodyDigest) return await readRow(db, found)
    if (await restart(db, found.request_id, given)) return undefined
  }
  throw new StoreUnavailable('a generation changed each time that it was read')
}

/** One statement decides which of many requests with the same key runs (contract 39.3). */
async function insert(db: Kysely<Tables>, given: NewGeneration): Promise<boolean> {
  const inserted = await db
    .insertInto('generations')
    .values({ ...rowOf(given), lease_until_ms: leaseEnd(db) })
    .onConflict((conflict) => conflict.columns(['account_id', 'key_digest']).doNothing())
    .executeTakeFirst()
  return (inserted.numInsertedOrUpdatedRows ?? 0n) > 0n
}

/** Takes over a generation that was lost; false if another request did. */
function restart(db: Kysely<Tables>, lost: string, given: NewGeneration): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    const restarted = await transaction
      .updateTable('generations')
      .set({ ...rowOf(given), lease_until_ms: leaseEnd(db) })
      .where('request_id', '=', lost)
      .where(mayRestart(db))
      .executeTakeFirst()
    if (restarted.numUpdatedRows === 0n) return false
    await deleteChunks(transaction, [lost])
    await deleteAnswersTo(transaction, [lost])
    await releaseCharge(transaction, lost)
    return true
  })
}

function leaseEnd(db: Kysely<Tables>): RawBuilder<number> {
  return sql<number>`${nowOf(db)} + ${leaseMs}`
}

/** A lease that ends later than a new one is older than a step of the clock: its process renews it, or is dead (contract 39.9). */
async function shortenLease(db: Kysely<Tables>, requestId: string): Promise<void> {
  await db
    .updateTable('generations')
    .set({ lease_until_ms: leaseEnd(db) })
    .where('request_id', '=', requestId)
    .where('lease_until_ms', '>', leaseEnd(db))
    .execute()
}

/**
 * The request died without delivering anything, and from now on it cannot. On SQLite recovery has already decided that
 * by its marks; on PostgreSQL its node may never return (contract 36.3).
 */
async function releaseCharge(db: Transaction<Tables>, requestId: string): Promise<void> {
  if (isOnSqlite(db)) return
  await writeSettlements(db, [{ id: requestId, state: 'lost', outcome: { charged: 0, attempts: [], totalMs: 0 } }])
}

/** Deletes the oldest ended generations of an account that has too many, or too many bytes. */
async function makeRoom(db: Kysely<Tables>, accountId: string): Promise<void> {
  let { count, bytes } = await db
    .selectFrom('generations')
    .select((row) => [
      row.fn.countAll<number>().as('count'),
      sql<number>`cast(coalesce(sum(bytes), 0) as bigint)`.as('bytes'),
    ])
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  const isFull = (): boolean => count > maxPerAccount || bytes > maxBytesOfAccount
  while (isFull()) {
    const oldest = await db
      .selectFrom('generations')
      .select(['request_id', 'bytes'])
      .where('account_id', '=', accountId)
      .where(hasEnded(db))
      .orderBy('created_at_ms')
      .limit(idsAtOnce)
      .execute()
    if (oldest.length === 0) return
    const ids: string[] = []
    for (const row of oldest) {
      if (!isFull()) break
      ids.push(row.request_id)
      count -= 1
      bytes -= row.bytes
    }
    await db.transaction().execute((transaction) => deleteEnded(transaction, ids))
  }
}

/** Deletes these generations, except any whose process has prolonged its lease meanwhile. */
async function deleteEnded(db: Transaction<Tables>, requestIds: readonly string[]): Promise<void> {
  if (requestIds.length === 0) return
  const deleted = await db
    .deleteFrom('generations')
    .where('request_id', 'in', requestIds)
    .where(hasEnded(db))
    .returning('request_id')
    .execute()
  await deleteChunks(
    db,
    deleted.map((row) => row.request_id),
  )
}

async function deleteChunks(db: Transaction<Tables>, requestIds: readonly string[]): Promise<void> {
  if (requestIds.length === 0) return
  await db.deleteFrom('generation_chunks').where('request_id', 'in', requestIds).execute()
}

function select(db: Kysely<Tables>) {
  return db
    .selectFrom('generations')
    .selectAll()
    .select(sql<number>`lease_until_ms - ${nowOf(db)}`.as('lease_left_ms'))
    .select(sql<number>`case when ${hasEnded(db)} then 1 else 0 end`.as('has_ended'))
    .select(sql<number>`case when ${mayRestart(db)} then 1 else 0 end`.as('may_restart'))
}

/** Whether no process generates or delivers an answer anymore: only then is it deleted for its age or to make room. */
function hasEnded(db: Kysely<Tables>): RawBuilder<SqlBool> {
  return sql<SqlBool>`(state not in ('running', 'too_large') or lease_until_ms <= ${nowOf(db)})`
}

/** Whether its process died before any content was stored, and before a client could know the ID of its response (contract 39.13). */
function mayRestart(db: Kysely<Tables>): RawBuilder<SqlBool> {
  return sql<SqlBool>`(state = 'running' and has_content = 0 and lease_until_ms <= ${nowOf(db)} and not (
    background = 1 and case when stream = 1 then chunks > 0 else sealed_response is not null end))`
}

function rowOf(given: NewGeneration): Omit<GenerationRow, 'lease_until_ms'> {
  return {
    account_id: given.accountId,
    key_digest: given.keyDigest,
    request_id: given.requestId,
    body_digest: given.bodyDigest,
    format: given.format,
    stream: given.stream ? 1 : 0,
    background: given.isBackground ? 1 : 0,
    state: 'running',
    has_content: 0,
    cancel_requested: 0,
    head: null,
    sealed_response: null,
    chunks: 0,
    bytes: 0,
    created_at_ms: Math.floor(given.createdAtMs),
    expires_at_ms: Math.floor(given.expiresAtMs),
  }
}

async function readRow(
  db: Kysely<Tables>,
  row: GenerationRow & { readonly lease_left_ms: number },
): Promise<StoredGeneration> {
  if (row.lease_left_ms > leaseMs) await shortenLease(db, row.request_id)
  return {
    accountId: row.account_id,
    keyDigest: row.key_digest,
    requestId: row.request_id,
    bodyDigest: row.body_digest,
    format: row.format as ClientFormatId,
    stream: row.stream === 1,
    isBackground: row.background === 1,
    createdAtMs: row.created_at_ms,
    state: row.state as GenerationState,
    hasContent: row.has_content === 1,
    isCancelRequested: row.cancel_requested === 1,
    head: row.head ?? undefined,
    sealedResponse: row.sealed_response ?? undefined,
    chunks: row.chunks,
    bytes: row.bytes,
    leaseLeftMs: Math.min(row.lease_left_ms, leaseMs),
  }
}
