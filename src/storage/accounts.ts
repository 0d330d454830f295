import type { Transaction } from 'kysely'
import type { AccountQueries } from '../accounts/ports.ts'
import type { Account } from '../domain/accounts.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { AccountRow, Tables } from './schema/schema.ts'

/** Accounts. */
export const accountStore = defineStore<AccountQueries>({
  addAccount(db, account, record) {
    return change(db, record, async (transaction) => {
      const { name } = account
      const taken = await transaction.selectFrom('accounts').select('id').where('name', '=', name).executeTakeFirst()
      if (taken !== undefined) return false
      await transaction.insertInto('accounts').values(accountRow(account)).execute()
      return true
    })
  },

  async findAccount(db, id) {
    const row = await db.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? undefined : readAccount(row)
  },

  async countAccounts(db) {
    const { count } = await db
      .selectFrom('accounts')
      .select((row) => row.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    return count
  },

  async listAccounts(db, limit) {
    const rows = await db
      .selectFrom('accounts')
      .selectAll()
      .orderBy('created_at_ms')
      .orderBy('id')
      .limit(limit)
      .execute()
    return rows.map(readAccount)
  },

  setPlan(db, accountId, planId, record) {
    return change(db, record, (transaction) => putOnPlan(transaction, accountId, planId))
  },

  setSuspended(db, accountId, suspended, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .updateTable('accounts')
        .set({ suspended: suspended ? 1 : 0 })
        .where('id', '=', accountId)
        .where('suspended', '=', suspended ? 0 : 1)
        .executeTakeFirstOrThrow()
      return result.numUpdatedRows > 0n
    })
  },
})

/** Converts an account to its row. */
export function accountRow(account: Account): AccountRow {
  return {
    id: account.id,
    name: account.name,
    plan_id: account.planId,
    suspended: account.suspended ? 1 : 0,
    created_at_ms: Math.floor(account.createdAtMs),
  }
}

/** The same inside a transaction: every plan change ends up here. */
export async function putOnPlan(transaction: Transaction<Tables>, accountId: string, planId: string): Promise<boolean> {
  const result = await transaction
    .updateTable('accounts')
    .set({ plan_id: planId })
    .where('id', '=', accountId)
    .executeTakeFirstOrThrow()
  return result.numUpdatedRows > 0n
}

/** Converts a row to an account. */
export function readAccount(row: AccountRow): Account {
  return {
    id: row.id,
    name: row.name,
    planId: row.plan_id,
    suspended: row.suspended !== 0,
    createdAtMs: row.created_at_ms,
  }
}
