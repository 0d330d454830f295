import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import type { StoredConversation } from '../domain/conversations.ts'
import type { ConversationStore } from '../gateway/responses/conversation-store.ts'
import {
  addConversation,
  appendItems,
  deleteExpired,
  expireConversation,
  findConversation,
  findItem,
  listConversations,
  listItems,
  removeItems,
  updateConversation,
} from './conversations.ts'
import type { Tables } from './schema/schema.ts'

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

/** `maxBytesOfAccount`: encrypted text that one account may store, answers and conversations together. */
export function createConversationStore(db: Kysely<Tables>, maxBytesOfAccount = Infinity): RetainedConversations {
  return {
    add: (conversation) => addConversation(db, conversation, maxBytesOfAccount),
    find: (accountId, id, sinceMs) => findConversation(db, accountId, id, sinceMs),
    update: (accountId, id, sealedMetadata, times) => updateConversation(db, accountId, id, sealedMetadata, times),
    async remove(accountId, id, sinceMs) {
      if (!(await expireConversation(db, accountId, id, sinceMs))) return false
      while (await deleteExpired(db, 0, id)) await nextTurn()
      return true
    },
    append: (accountId, id, items, options) => appendItems(db, accountId, id, items, { ...options, maxBytesOfAccount }),
    listItems: (accountId, id, page) => listItems(db, accountId, id, page),
    findItem: (accountId, id, digest) => findItem(db, accountId, id, digest),
    removeItems: (accountId, id, digests) => removeItems(db, accountId, id, digests),
    listOf: (accountId, sinceMs, before, limit) => listConversations(db, accountId, sinceMs, before, limit),
    async deleteUntil(timeMs, limit) {
      let steps = 0
      while (steps < limit && (await deleteExpired(db, timeMs))) {
        steps += 1
        await nextTurn()
      }
      return steps
    },
  }
}
