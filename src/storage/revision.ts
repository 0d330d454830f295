import type { Kysely, Transaction } from 'kysely'
import type { AuditRecord } from '../domain/audit.ts'
import { appendEntry } from './audit.ts'
import { assertNotMoved } from './migrations/migrate.ts'
import type { Tables } from './schema/schema.ts'

class NothingChanged extends Error {}

/**
 * Runs one control plane change in a transaction that increments the revision first and appends the audit events last.
 * The revision's row thus acts as a lock: such changes are serialized on every node, so `work` may check and then act.
 * If `work` returns false, nothing is written and the revision stays. Inside `atRevision`, it is part of that
 * transaction.
 */
export async function change(
  db: Kysely<Tables>,
  record: AuditRecord | readonly AuditRecord[],
  work: (transaction: Transaction<Tables>) => Promise<boolean>,
): Promise<boolean> {
  if (db.isTransaction) return changeWithin(db as Transaction<Tables>, record, work)
  try {
    await db.transaction().execute(async (transaction) => {
      await nextRevision(transaction)
      if (!(await work(transaction))) throw new NothingChanged()
      for (const each of [record].flat()) await appendEntry(transaction, each)
    })
    return true
  } catch (error) {
    if (error instanceof NothingChanged) return false
    throw error
  }
}

/**
 * Runs several changes in one transaction, if nothing changed since this revision was read. Otherwise, and if `work`
 * throws, nothing is written.
 */
export async function atRevision<Value>(
  db: Kysely<Tables>,
  revision: number,
  work: (transaction: Transaction<Tables>) => Promise<Value>,
): Promise<Value | 'stale'> {
  try {
    return await db.transaction().execute(async (transaction) => {
      if ((await nextRevision(transaction)) !== revision + 1) throw new NothingChanged()
      return work(transaction)
    })
  } catch (error) {
    if (error instanceof NothingChanged) return 'stale'
    throw error
  }
}

/** The caller's transaction holds the lock and increments the revision. A change that returns false has written nothing. */
async function changeWithin(
  transaction: Transaction<Tables>,
  record: AuditRecord | readonly AuditRecord[],
  work: (transaction: Transaction<Tables>) => Promise<boolean>,
): Promise<boolean> {
  if (!(await work(transaction))) return false
  for (const each of [record].flat()) await appendEntry(transaction, each)
  return true
}

async function nextRevision(transaction: Transaction<Tables>): Promise<number> {
  const { value } = await transaction
    .updateTable('revisions')
    .set((row) => ({ value: row('value', '+', 1) }))
    .where('id', '=', 1)
    .returning('value')
    .executeTakeFirstOrThrow()
  // A move to SQLite locks the revision until it has marked the database (contract 37.8).
  await assertNotMoved(transaction)
  return value
}
