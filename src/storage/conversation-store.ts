import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import {
  addConversation,
  appendItems,
  conversationQueries,
  deleteExpired,
  expireConversation,
  type RetainedConversations,
} from './conversations.ts'
import type { Tables } from './schema/schema.ts'

/** `maxBytesOfAccount`: encrypted text that one account may store, answers and conversations together. */
export function createConversationStore(db: Kysely<Tables>, maxBytesOfAccount = Infinity): RetainedConversations {
  return {
    ...conversationQueries(db),
    add: (conversation) => addConversation(db, conversation, maxBytesOfAccount),
    async remove(accountId, id, sinceMs) {
      if (!(await expireConversation(db, accountId, id, sinceMs))) return false
      while (await deleteExpired(db, 0, id)) await nextTurn()
      return true
    },
    append: (accountId, id, items, options) => appendItems(db, accountId, id, items, { ...options, maxBytesOfAccount }),
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
