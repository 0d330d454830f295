import type { Kysely, Transaction } from 'kysely'
import type { NewConversationItem, StoredConversation, StoredConversationItem } from '../domain/conversations.ts'
import type { AppendOptions, AppendFailure, ConversationStore } from '../gateway/responses/conversation-store.ts'
import { defineStore } from './define-store.ts'
import { makeRoom } from './responses.ts'
import type { ConversationRow, Tables } from './schema/schema.ts'

/** Rows per statement, well below SQLite's limit on bound parameters. */
const rowsPerStatement = 500
/** Rows deleted per transaction, so that nothing else waits for long. */
const rowsPerDeletion = 200
/** The size charged per row in addition to its text, as the triggers count it. */
const conversationRowBytes = 1024
const itemRowBytes = 256

/** Adds a conversation without items; false if the account has no room for it. */
export function addConversation(
  db: Kysely<Tables>,
  conversation: StoredConversation,
  maxBytesOfAccount: number,
): Promise<boolean> {
  const { accountId, sealedMetadata } = conversation
  return db.transaction().execute(async (transaction) => {
    const bytes = sealedMetadata.length + conversationRowBytes
    if (!(await makeRoom(transaction, accountId, bytes, maxBytesOfAccount))) return false
    await transaction
      .insertInto('conversations')
      .values({
        id: conversation.id,
        account_id: accountId,
        created_at_ms: Math.floor(conversation.createdAtMs),
        last_used_at_ms: Math.floor(conversation.lastUsedAtMs),
        items: 0,
        bytes: 0,
        next_position: 0,
        sealed_metadata: sealedMetadata,
      })
      .execute()
    return true
  })
}

/** Conversations on either engine, with retention. Does not close the database. */
export interface RetainedConversations extends ConversationStore {
  /** An account's conversations last used after `sinceMs`, newest first; those before the cursor `before` if given. */
  listOf(
    accountId: string,
    sinceMs: number,
    before: Pick<StoredConversation, 'id' | 'createdAtMs'> | undefined,
    limit: number,
  ): Promise<readonly StoredConversation[]>
  /** Deletes data last used at or before `timeMs`, in at most `limit` short transactions; returns how many it used. */
  deleteUntil(timeMs: number, limit: number): Promise<number>
}

/** The queries of conversations that need nothing but the database. */
export const conversationQueries = defineStore<
  Omit<RetainedConversations, 'add' | 'append' | 'remove' | 'deleteUntil'>
>({
  async find(db, accountId, id, sinceMs) {
    const row = await db
      .selectFrom('conversations')
      .selectAll()
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('last_used_at_ms', '>', wholeTime(sinceMs))
      .executeTakeFirst()
    return row === undefined ? undefined : readConversation(row)
  },

  async listOf(db, accountId, sinceMs, before, limit) {
    let query = db
      .selectFrom('conversations')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('last_used_at_ms', '>', wholeTime(sinceMs))
    if (before !== undefined) {
      const { id, createdAtMs } = before
      query = query.where((row) =>
        row.or([
          row('created_at_ms', '<', createdAtMs),
          row.and([row('created_at_ms', '=', createdAtMs), row('id', '<', id)]),
        ]),
      )
    }
    const rows = await query.orderBy('created_at_ms', 'desc').orderBy('id', 'desc').limit(limit).execute()
    return rows.map(readConversation)
  },

  async update(db, accountId, id, sealedMetadata, { nowMs, sinceMs }) {
    const row = await db
      .updateTable('conversations')
      .set({ sealed_metadata: sealedMetadata, last_used_at_ms: Math.floor(nowMs) })
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('last_used_at_ms', '>', wholeTime(sinceMs))
      .returningAll()
      .executeTakeFirst()
    return row === undefined ? undefined : readConversation(row)
  },

  async listItems(db, accountId, id, { order, limit, afterDigest }) {
    let query = db
      .selectFrom('conversation_items')
      .select(['position', 'sealed'])
      .where('conversation_id', '=', id)
      .where('account_id', '=', accountId)
    if (afterDigest !== undefined) {
      const after = await findItem(db, accountId, id, afterDigest)
      if (after === undefined) return undefined
      query = query.where('position', order === 'asc' ? '>' : '<', after.position)
    }
    return await query.orderBy('position', order).limit(limit).execute()
  },
  findItem,

  removeItems(db, accountId, id, digests) {
    return db.transaction().execute(async (transaction) => {
      // The same row lock as in `appendItems`.
      const row = await transaction
        .updateTable('conversations')
        .set((own) => ({ items: own.ref('items') }))
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .returning(['items', 'bytes'])
        .executeTakeFirst()
      if (row === undefined) return 0
      let count = 0
      let bytes = 0
      for (let from = 0; from < digests.length; from += rowsPerStatement) {
        const removed = await transaction
          .deleteFrom('conversation_items')
          .where('conversation_id', '=', id)
          .where('digest', 'in', digests.slice(from, from + rowsPerStatement))
          .returning('bytes')
          .execute()
        count += removed.length
        for (const item of removed) bytes += item.bytes
      }
      await transaction
        .updateTable('conversations')
        .set({ items: row.items - count, bytes: row.bytes - bytes })
        .where('id', '=', id)
        .execute()
      return count
    })
  },
})

/** Appends all items, adjacent to each other, or none. @see ConversationStore.append */
export function appendItems(
  db: Kysely<Tables>,
  accountId: string,
  id: string,
  given: readonly NewConversationItem[],
  options: AppendOptions & { readonly maxBytesOfAccount: number },
): Promise<AppendFailure | undefined> {
  return db.transaction().execute(async (transaction) => {
    const { nowMs, sinceMs, maxItems, maxBytes, maxBytesOfAccount, skipsDuplicates } = options
    // Locks the row, which serializes appends to one conversation.
    const row = await transaction
      .updateTable('conversations')
      .set({ last_used_at_ms: Math.floor(nowMs) })
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('last_used_at_ms', '>', wholeTime(sinceMs))
      .returning(['items', 'bytes', 'next_position'])
      .executeTakeFirst()
    if (row === undefined) return 'not_found'
    const known = await knownDigests(transaction, id, given)
    const items: NewConversationItem[] = []
    for (const item of given) {
      if (!known.has(item.digest)) items.push(item)
      else if (!skipsDuplicates) return 'duplicate'
      known.add(item.digest)
    }
    const bytes = items.reduce((sum, item) => sum + item.bytes, 0)
    if (row.items + items.length > maxItems || row.bytes + bytes > maxBytes) return 'full'
    const stored = items.reduce((sum, item) => sum + item.sealed.length + itemRowBytes, 0)
    if (!(await makeRoom(transaction, accountId, stored, maxBytesOfAccount))) return 'no_room'
    const rows = items.map((item, index) => ({
      conversation_id: id,
      position: row.next_position + index,
      account_id: accountId,
      digest: item.digest,
      bytes: item.bytes,
      sealed: item.sealed,
    }))
    for (let from = 0; from < rows.length; from += rowsPerStatement) {
      const some = rows.slice(from, from + rowsPerStatement)
      await transaction.insertInto('conversation_items').values(some).execute()
    }
    await transaction
      .updateTable('conversations')
      .set({
        items: row.items + items.length,
        bytes: row.bytes + bytes,
        next_position: row.next_position + items.length,
      })
      .where('id', '=', id)
      .execute()
    return undefined
  })
}

async function knownDigests(
  transaction: Transaction<Tables>,
  id: string,
  items: readonly NewConversationItem[],
): Promise<Set<string>> {
  const known = new Set<string>()
  for (let from = 0; from < items.length; from += rowsPerStatement) {
    const digests = items.slice(from, from + rowsPerStatement).map(({ digest }) => digest)
    const rows = await transaction
      .selectFrom('conversation_items')
      .select('digest')
      .where('conversation_id', '=', id)
      .where('digest', 'in', digests)
      .execute()
    for (const { digest } of rows) known.add(digest)
  }
  return known
}

function findItem(
  db: Kysely<Tables>,
  accountId: string,
  id: string,
  digest: string,
): Promise<StoredConversationItem | undefined> {
  return db
    .selectFrom('conversation_items')
    .select(['position', 'sealed'])
    .where('conversation_id', '=', id)
    .where('account_id', '=', accountId)
    .where('digest', '=', digest)
    .executeTakeFirst()
}

/**
 * Marks a conversation as expired, which hides it from reads; false if the account has none with that id.
 * `deleteExpired` deletes its content.
 */
export async function expireConversation(
  db: Kysely<Tables>,
  accountId: string,
  id: string,
  sinceMs: number,
): Promise<boolean> {
  const updated = await db
    .updateTable('conversations')
    .set({ last_used_at_ms: 0 })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('last_used_at_ms', '>', wholeTime(sinceMs))
    .executeTakeFirstOrThrow()
  return updated.numUpdatedRows > 0n
}

/**
 * Deletes items of one conversation last used at or before `timeMs`, the least recently used first, and then the
 * conversation; `id` selects a certain one. Returns whether there may be more.
 */
export function deleteExpired(db: Kysely<Tables>, timeMs: number, id?: string): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    let query = transaction.selectFrom('conversations').select('id').where('last_used_at_ms', '<=', wholeTime(timeMs))
    if (id !== undefined) query = query.where('id', '=', id)
    const expired = await query.orderBy('last_used_at_ms').limit(1).executeTakeFirst()
    if (expired === undefined) return false
    const items = await transaction
      .selectFrom('conversation_items')
      .select('position')
      .where('conversation_id', '=', expired.id)
      .orderBy('position')
      .limit(rowsPerDeletion)
      .execute()
    if (items.length > 0) {
      const last = items.at(-1)!.position
      await transaction
        .deleteFrom('conversation_items')
        .where('conversation_id', '=', expired.id)
        .where('position', '<=', last)
        .execute()
    }
    if (items.length < rowsPerDeletion) {
      await transaction.deleteFrom('conversations').where('id', '=', expired.id).execute()
    }
    return id === undefined || items.length === rowsPerDeletion
  })
}

/** A retention that exceeds the time range keeps everything except explicitly expired data. */
function wholeTime(timeMs: number): number {
  return Math.max(0, Math.floor(timeMs))
}

function readConversation(row: ConversationRow): StoredConversation {
  return {
    id: row.id,
    accountId: row.account_id,
    createdAtMs: row.created_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
    items: row.items,
    bytes: row.bytes,
    sealedMetadata: row.sealed_metadata,
  }
}
