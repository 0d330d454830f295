import type { IncidentQueries } from '../accounts/status/status-ports.ts'
import type { Impact, IncidentState, IncidentUpdate } from '../domain/incidents.ts'
import { appendEntry } from './audit.ts'
import { defineStore } from './define-store.ts'
import type { Tables } from './schema/schema.ts'

/** Incidents on the status page. */
export const incidentStore = defineStore<IncidentQueries>({
  async addIncident(db, { updates, ...incident }, record) {
    await db.transaction().execute(async (transaction) => {
      const { id, title, impact, createdAtMs } = incident
      await transaction
        .insertInto('incidents')
        .values({ id, title, impact, created_at_ms: createdAtMs, is_over: 0 })
        .execute()
      for (const update of updates)
        await transaction.insertInto('incident_updates').values(updateRow(id, update)).execute()
      await appendEntry(transaction, record)
    })
  },

  addIncidentUpdate(db, incidentId, update, record) {
    return db.transaction().execute(async (transaction) => {
      const changed = await transaction
        .updateTable('incidents')
        .set({ is_over: update.state === 'resolved' ? 1 : 0 })
        .where('id', '=', incidentId)
        .executeTakeFirstOrThrow()
      if (changed.numUpdatedRows === 0n) return false
      const { last } = await transaction
        .selectFrom('incident_updates')
        .select(({ fn }) => fn.max('at_ms').as('last'))
        .where('incident_id', '=', incidentId)
        .executeTakeFirstOrThrow()
      // The newest update must sort last, even within the same millisecond or after the clock was set back.
      const atMs = Math.max(update.atMs, (last ?? 0) + 1)
      await transaction
        .insertInto('incident_updates')
        .values(updateRow(incidentId, { ...update, atMs }))
        .execute()
      await appendEntry(transaction, record)
      return true
    })
  },

  async listIncidents(db, sinceMs, limit) {
    const rows = await db
      .selectFrom('incidents')
      .selectAll()
      .where((row) => row.or([row('created_at_ms', '>=', sinceMs), row('is_over', '=', 0)]))
      .orderBy('created_at_ms', 'desc')
      .orderBy('id', 'desc')
      .limit(limit)
      .execute()
    if (rows.length === 0) return []
    const updates = await db
      .selectFrom('incident_updates')
      .selectAll()
      .where(
        'incident_id',
        'in',
        rows.map(({ id }) => id),
      )
      .orderBy('at_ms', 'desc')
      .orderBy('id', 'desc')
      .execute()
    return rows.map(({ id, title, impact, created_at_ms: createdAtMs }) => ({
      id,
      title,
      impact: impact as Impact,
      createdAtMs,
      updates: updates
        .filter((update) => update.incident_id === id)
        .map(({ id: updateId, state, body, at_ms: atMs }) => ({
          id: updateId,
          state: state as IncidentState,
          text: body,
          atMs,
        })),
    }))
  },
})

function updateRow(incidentId: string, { id, state, text, atMs }: IncidentUpdate): Tables['incident_updates'] {
  return { id, incident_id: incidentId, state, body: text, at_ms: atMs }
}
