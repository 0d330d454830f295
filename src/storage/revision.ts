import type { Kysely, Transaction } from 'kysely'
import type { Tables } from './schema.ts'

class NothingChanged extends Error {}

/**
 * Runs one change of accounts, keys or upstreams in a transaction that moves the revision first. The revision's row is
 * thereby a lock: such changes happen one after another, on every node, so `work` may check and then act. Where `work`
 * gives false nothing is written and the revision stays.
 */
export async function change(
  db: Kysely<Tables>,
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
    })
    return true
  } catch (error) {
    if (error instanceof NothingChanged) return false
    throw error
  }
}

/** How often anything changed; see `KeyStore.revision`. */
export async function readRevision(db: Kysely<Tables>): Promise<number> {
  const row = await db.selectFrom('revisions').select('value').where('id', '=', 1).executeTakeFirstOrThrow()
  return row.value
}
