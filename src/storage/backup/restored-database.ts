import { DatabaseSync } from 'node:sqlite'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { ChainLink } from '../../domain/audit-chain.ts'
import type { AuditRecord } from '../../domain/audit.ts'
import type { BackupManifest, Reapplied } from '../../domain/backup.ts'
import { bookedOfLost } from '../ledger/lost-holds.ts'
import { change } from '../revision.ts'
import type { Tables } from '../schema/schema.ts'
import { openMigrated } from '../sqlite/open-sqlite.ts'
import { manifestTable } from './backup-file.ts'
import { reapplyChanges } from './later-changes.ts'

/** Every way to be signed in: what happened to them after the backup is unknown, and signing in again costs little. */
const signIns = ['sessions', 'operator_sessions', 'sign_in_proofs'] as const satisfies readonly (keyof Tables)[]

/** Opens a verified copy of a backup as the database that it becomes: its manifest is removed, its schema is current. */
export function openRestored(path: string): Promise<Kysely<Tables>> {
  return openMigrated(() => {
    const database = new DatabaseSync(path, { enableForeignKeyConstraints: true })
    // In this mode the file alone is the whole database, so that it can be renamed.
    database.exec('pragma journal_mode = delete; pragma synchronous = full')
    database.exec(`drop table ${manifestTable}`)
    return database
  })
}

/**
 * Charges every request that was undecided: the delivery marks that would decide it are not part of a copy (contract
 * 32.11). What they hold of budgets is spent. PostgreSQL counts a unit with the admission, SQLite with the charge. No process of the copy's origin remains.
 */
export async function settleUndecided(
  transaction: Transaction<Tables>,
  engine: BackupManifest['engine'],
): Promise<void> {
  const open = ['open', 'delivered']
  if (engine === 'sqlite')
    await transaction
      .insertInto('usage')
      .columns(['account_id', 'period_id', 'used'])
      .expression((row) =>
        row
          .selectFrom('requests')
          .select(['account_id', 'period_id', sql<number>`sum(units - charged)`.as('used')])
          .where('state', 'in', open)
          .groupBy(['account_id', 'period_id']),
      )
      .onConflict((conflict) =>
        conflict
          .columns(['account_id', 'period_id'])
          .doUpdateSet((row) => ({ used: sql<number>`${row.ref('usage.used')} + ${row.ref('excluded.used')}` })),
      )
      .execute()
  await transaction
    .updateTable('requests')
    .set((row) => ({ state: 'lost', charged: row.ref('units') }))
    .where('state', 'in', open)
    .execute()
  await transaction
    .updateTable('requests')
    .set({ due_mark: null, node_id: null })
    .where((row) => row.or([row('due_mark', 'is not', null), row('node_id', 'is not', null)]))
    .execute()
  await transaction.deleteFrom('nodes').execute()
  await bookHolds(transaction)
}

/** Nothing runs any more: what requests still hold of budgets is spent (contract 46.5), and nothing else is held. */
async function bookHolds(transaction: Transaction<Tables>): Promise<void> {
  const budgets = await transaction.selectFrom('budgets').select(['id', 'amount']).execute()
  const limits = new Map(budgets.map(({ id, amount }) => [id, amount]))
  const holding = await transaction
    .selectFrom('requests')
    .select(['id', 'account_id', 'holds'])
    .where('holds', 'is not', null)
    .execute()
  for (const { id, account_id: accountId, holds } of holding) {
    const { booked } = bookedOfLost(holds!, (budgetId) => limits.get(budgetId) ?? 0)
    for (const { budgetId, bucketMs, spent } of booked)
      await transaction
        .insertInto('budget_spending')
        .values({ budget_id: budgetId, bucket_ms: bucketMs, account_id: accountId, spent, held: 0 })
        .onConflict((conflict) =>
          conflict.columns(['budget_id', 'bucket_ms']).doUpdateSet((row) => ({
            spent: sql<number>`min(${row.ref('budget_spending.spent')} + ${spent}, ${Number.MAX_SAFE_INTEGER})`,
          })),
        )
        .execute()
    await transaction
      .updateTable('requests')
      .set({ holds: null, booked: JSON.stringify(booked) })
      .where('id', '=', id)
      .execute()
  }
  await forgetHeld(transaction)
}

/** SQLite does not use this column: running requests hold in memory. PostgreSQL would count what an earlier move left. */
export async function forgetHeld(db: Kysely<Tables>): Promise<void> {
  await db.updateTable('budget_spending').set({ held: 0 }).where('held', '<>', 0).execute()
}

/**
 * Makes old data safe to serve: ends all sessions, deletes unused sign-in links and codes, applies later changes that
 * are known, and records the restore (contract 37.5, 37.6). `record` receives the number of entries that were kept.
 */
export async function settleRestored(
  db: Kysely<Tables>,
  engine: BackupManifest['engine'],
  later: AsyncIterable<ChainLink>,
  record: (reapplied: number) => AuditRecord,
): Promise<Reapplied> {
  let reapplied: Reapplied | undefined
  await db.transaction().execute(async (transaction) => {
    await settleUndecided(transaction, engine)
    for (const table of signIns) await transaction.deleteFrom(table).execute()
    reapplied = await reapplyChanges(transaction, later)
  })
  const kept = reapplied!
  await change(db, record(kept.entries), () => Promise.resolve(true))
  return kept
}
