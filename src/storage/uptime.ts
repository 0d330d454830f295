import type { UptimeQueries } from '../accounts/status/status-ports.ts'
import type { UptimeKind } from '../domain/uptime.ts'
import { compareText } from '../runtime/compare-text.ts'
import { defineStore } from './define-store.ts'

/** Daily counts for the status page. */
export const uptimeStore = defineStore<UptimeQueries>({
  async addUptime(db, counts, forgetBefore) {
    // Every node locks rows in the same order.
    const ordered = counts.toSorted(
      (a, b) => compareText(a.day, b.day) || compareText(a.kind, b.kind) || compareText(a.name, b.name),
    )
    await db.transaction().execute(async (transaction) => {
      for (const count of ordered) {
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
  },

  async listUptime(db, fromDay) {
    const rows = await db.selectFrom('uptime').selectAll().where('day', '>=', fromDay).execute()
    return rows.map((row) => ({ ...row, kind: row.kind as UptimeKind }))
  },
})
