import type { Kysely } from 'kysely'
import type { UptimeCount, UptimeKind } from '../domain/uptime.ts'
import type { Tables } from './schema/schema.ts'

/** Adds counts to their days; see `StatusStore.addUptime`. */
export async function addUptime(
  db: Kysely<Tables>,
  counts: readonly UptimeCount[],
  forgetBefore: string,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    for (const count of counts) {
      await transaction
        .insertInto('uptime')
        .values(count)
        .onConflict((conflict) =>
          conflict.columns(['day', 'kind', 'name']).doUpdateSet((row) => ({
            answered: row('uptime.answered', '+', row.ref('excluded.answered')),
            failed: row('uptime.failed', '+', row.ref('excluded.failed')),
          })),
        )
        .execute()
    }
    await transaction.deleteFrom('uptime').where('day', '<', forgetBefore).execute()
  })
}

/** All counts from a day on: one for each day, profile, and backend. */
export async function listUptime(db: Kysely<Tables>, fromDay: string): Promise<readonly UptimeCount[]> {
  const rows = await db.selectFrom('uptime').selectAll().where('day', '>=', fromDay).execute()
  return rows.map((row) => ({ ...row, kind: row.kind as UptimeKind }))
}
