import type { Kysely, Transaction } from 'kysely'
import type { Account } from '../domain/accounts.ts'
import type { AuditRecord } from '../domain/audit.ts'
import { change } from './revision.ts'
import type { AccountRow, Tables } from './schema/schema.ts'

/** Adds an account. @throws if its id is taken */
export async function addAccount(db: Kysely<Tables>, account: Account, record: AuditRecord): Promise<void> {
  await change(db, record, async (transaction) => {
    await transaction.insertInto('accounts').values(accountRow(account)).execute()
    return true
  })
}

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

/** The account of that id, if any. */
export async function findAccount(db: Kysely<Tables>, id: string): Promise<Account | undefined> {
  const row = await db.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst()
  return row === undefined ? undefined : readAccount(row)
}

/** The first `limit` accounts in order of creation. */
export async function listAccounts(db: Kysely<Tables>, limit: number): Promise<readonly Account[]> {
  const rows = await db.selectFrom('accounts').selectAll().orderBy('created_at_ms').orderBy('id').limit(limit).execute()
  return rows.map(readAccount)
}

/** Moves an account to another plan; false if the account is unknown. */
export function setPlan(db: Kysely<Tables>, accountId: string, planId: string, record: AuditRecord): Promise<boolean> {
  return change(db, record, (transaction) => putOnPlan(transaction, accountId, planId))
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

/** Suspends or resumes an account; false if the account is unknown or already in that state. */
export function setSuspended(
  db: Kysely<Tables>,
  accountId: string,
  suspended: boolean,
  record: AuditRecord,
): Promise<boolean> {
  return change(db, record, async (transaction) => {
    const result = await transaction
      .updateTable('accounts')
      .set({ suspended: suspended ? 1 : 0 })
      .where('id', '=', accountId)
      .where('suspended', '=', suspended ? 0 : 1)
      .executeTakeFirstOrThrow()
    return result.numUpdatedRows > 0n
  })
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
