import type { Kysely, Transaction } from 'kysely'
import type { AuditRecord } from '../domain/audit.ts'
import { appendEntry } from './audit.ts'
import type { Tables } from './schema/schema.ts'

class NothingChanged extends Error {}

/**
 * Runs one control plane change in a transaction that increments the revision first and appends the audit events last.
 * The revision's row thus acts as a lock: such changes are serialized on every node, so `work` may check and then act.
 * If `work` returns false, nothing is written and the revision stays.
 */
export async function change(
  db: Kysely<Tables>,
  record: AuditRecord | readonly AuditRecord[],
  work: (transaction: Transaction<Tables>) => Promise<boolean>,
): Promise<boolean> {
  try {
    await db.transaction().execute(async (transaction) => {
      await transaction
        .updateTable('revisions')
        .set((row) => ({ value: row('value', '+', 1) }))
        .where('id', '=', 1)
        .execute()
      if (!(await work(transaction))) throw new NothingChanged()
      for (const each of [record].flat()) await appendEntry(transaction, each)
    })
    return true
  } catch (error) {
    if (error instanceof NothingChanged) return false
    throw error
  }
}
