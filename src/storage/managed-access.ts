import type { ManagedAccessStore } from '../accounts/ports.ts'
import {
  type ManagedRequest,
  type ManagedRequestState,
  managedTransitions,
  type ResaleControl,
} from '../domain/managed-access.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { ManagedRequestRow, ResaleControlRow } from './schema/schema.ts'

/** Maximum number of providers' controls read: a configuration has fewer. */
const maxControls = 1000
const openStates = ['requested', 'approved'] as const satisfies readonly ManagedRequestState[]

/** Managed access (contract 23). */
export const managedAccessStore = defineStore<ManagedAccessStore>({
  async managedAccess(db) {
    const { switched_on: switchedOn } = await db
      .selectFrom('managed_access')
      .select('switched_on')
      .where('id', '=', 1)
      .executeTakeFirstOrThrow()
    const rows = await db.selectFrom('resale_controls').selectAll().orderBy('provider').limit(maxControls).execute()
    return { switchedOn: switchedOn !== 0, controls: rows.map(readControl) }
  },

  switchManagedAccess(db, on, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .updateTable('managed_access')
        .set({ switched_on: on ? 1 : 0 })
        .where('id', '=', 1)
        .where('switched_on', '=', on ? 0 : 1)
        .executeTakeFirstOrThrow()
      return result.numUpdatedRows > 0n
    })
  },

  recordResale(db, control, record) {
    const { provider, noteId, recordedAtMs, recordedBy } = control
    const row = { note_id: noteId, recorded_at_ms: recordedAtMs, recorded_by: recordedBy, revoked_at_ms: null }
    return change(db, record, async (transaction) => {
      const known = await transaction
        .selectFrom('resale_controls')
        .select('revoked_at_ms')
        .where('provider', '=', provider)
        .executeTakeFirst()
      if (known?.revoked_at_ms === null) return false
      await transaction
        .insertInto('resale_controls')
        .values({ provider, ...row })
        // Earlier records are in the audit log.
        .onConflict((conflict) => conflict.column('provider').doUpdateSet(row))
        .execute()
      return true
    })
  },

  revokeResale(db, provider, atMs, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .updateTable('resale_controls')
        .set({ revoked_at_ms: Math.floor(atMs) })
        .where('provider', '=', provider)
        .where('revoked_at_ms', 'is', null)
        .executeTakeFirstOrThrow()
      return result.numUpdatedRows > 0n
    })
  },

  addManagedRequest(db, { id, accountId, createdAtMs }, maxRequests, record) {
    return change(db, record, async (transaction) => {
      const rows = await transaction
        .selectFrom('managed_requests')
        .select('state')
        .where('account_id', '=', accountId)
        .limit(maxRequests)
        .execute()
      if (rows.length >= maxRequests || rows.some(({ state }) => openStates.some((open) => open === state)))
        return false
      await transaction
        .insertInto('managed_requests')
        .values({ id, account_id: accountId, state: 'requested', created_at_ms: createdAtMs, decided_at_ms: null })
        .execute()
      return true
    })
  },

  async findManagedRequest(db, id) {
    const row = await db.selectFrom('managed_requests').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? undefined : readRequest(row)
  },

  async listManagedRequests(db, { limit, accountId, state }) {
    let query = db.selectFrom('managed_requests').selectAll()
    if (accountId !== undefined) query = query.where('account_id', '=', accountId)
    if (state !== undefined) query = query.where('state', '=', state)
    const rows = await query.orderBy('created_at_ms', 'desc').orderBy('id', 'desc').limit(limit).execute()
    return rows.map(readRequest)
  },

  stepManagedRequest(db, id, step, atMs, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .updateTable('managed_requests')
        .set({ state: step, decided_at_ms: Math.floor(atMs) })
        .where('id', '=', id)
        .where('state', 'in', [...managedTransitions[step]])
        .executeTakeFirstOrThrow()
      return result.numUpdatedRows > 0n
    })
  },

  async hasManagedAccess(db, accountId) {
    const row = await db
      .selectFrom('managed_requests')
      .select('id')
      .where('account_id', '=', accountId)
      .where('state', '=', 'approved')
      .executeTakeFirst()
    return row !== undefined
  },
})

function readControl(row: ResaleControlRow): ResaleControl {
  return {
    provider: row.provider,
    noteId: row.note_id,
    recordedAtMs: row.recorded_at_ms,
    recordedBy: row.recorded_by,
    revokedAtMs: row.revoked_at_ms,
  }
}

function readRequest(row: ManagedRequestRow): ManagedRequest {
  return {
    id: row.id,
    accountId: row.account_id,
    state: row.state as ManagedRequestState,
    createdAtMs: row.created_at_ms,
    decidedAtMs: row.decided_at_ms,
  }
}
