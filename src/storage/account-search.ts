import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { AccountSearchStore } from '../accounts/operators/operator-ports.ts'
import type { Account } from '../domain/accounts.ts'
import { readAccount } from './accounts.ts'
import { defineStore } from './define-store.ts'
import type { Tables } from './schema/schema.ts'

/** Accounts per read. The event loop runs between two reads, because SQLite answers synchronously. */
const strideAccounts = 1_000

/** Account search for operators. */
export const accountSearchStore = defineStore<AccountSearchStore>({
  async searchAccounts(db, { name, beforeId, limit, among }) {
    const sought = name?.toLowerCase() ?? ''
    const found: Account[] = []
    let before = beforeId
    for (let left = among; left > 0;) {
      const atOnce = Math.min(left, sought === '' ? limit : strideAccounts)
      const rows = await readBefore(db, before, atOnce)
      found.push(...rows.filter((account) => account.name.toLowerCase().includes(sought)))
      if (found.length >= limit || rows.length < atOnce) break
      before = rows.at(-1)?.id
      left -= rows.length
      await nextTurn()
    }
    return found.slice(0, limit)
  },
})

async function readBefore(
  db: Kysely<Tables>,
  beforeId: string | undefined,
  limit: number,
): Promise<readonly Account[]> {
  let query = db.selectFrom('accounts').selectAll()
  if (beforeId !== undefined)
    query = query.where(
      sql<boolean>`(created_at_ms, id) < (select created_at_ms, id from accounts where id = ${beforeId})`,
    )
  const rows = await query.orderBy('created_at_ms', 'desc').orderBy('id', 'desc').limit(limit).execute()
  return rows.map(readAccount)
}
