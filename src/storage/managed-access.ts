import type { Kysely } from 'kysely'
import type { ManagedSelection } from '../accounts/ports.ts'
import type { AuditRecord } from '../domain/audit.ts'
import {
  type ManagedAccessState,
  type ManagedRequest,
  type ManagedRequestState,
  managedTransitions,
  type ManagedAction,
  type ResaleControl,
} from '../domain/managed-access.ts'
import { change } from './revision.ts'
import type { ManagedRequestRow, ResaleControlRow, Tables } from './schema/schema.ts'

/** Most providers' controls read: a configuration has fewer. */
const maxControls = 1000
const openStates = ['requested', 'approved'] as const satisfies readonly ManagedRequestState[]

/** The operator's switch and the resale controls. */
export async function readManagedAccess(db: Kysely<Tables>): Promise<ManagedAccessState> {
  const { switched_on: switchedOn } = await db
    .selectFrom('managed_access')
    .select('switched_on')
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  const rows = await db.selectFrom('resale_controls').selectAll().orderBy('provider').limit(maxControls).execute()
  return { switchedOn: switchedOn !== 0, controls: rows.map(readControl) }
}

/** Turns the operator's switch on or off; false if it is already in that state. */
export function switchManagedAccess(db: Kysely<Tables>, on: boolean, record: AuditRecord): Promise<boolean> {
  return change(db, record, async (transaction) => {
    const result = await transaction
      .updateTable('managed_access')
      .set({ switched_on: on ? 1 : 0 })
      .where('id', '=', 1)
      .where('switched_on', '=', on ? 0 : 1)
      .executeTakeFirstOrThrow()
    return result.numUpdatedRows > 0n
  })
}

/** Records a provider's resale controls; false if some are recorded and not revoked. */
export function recordResale(
  db: Kysely<Tables>,
  control: Omit<ResaleControl, 'revokedAtMs'>,
  record: AuditRecord,
): Promise<boolean> {
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
}

/** Revokes a provider's resale controls; false if none are recorded. */
export function revokeResale(
  db: Kysely<Tables>,
  provider: string,
  atMs: number,
  record: AuditRecord,
): Promise<boolean> {
  return change(db, record, async (transaction) => {
    const result = await transaction
      .updateTable('resale_controls')
      .set({ revoked_at_ms: Math.floor(atMs) })
      .where('provider', '=', provider)
      .where('revoked_at_ms', 'is', null)
      .executeTakeFirstOrThrow()
    return result.numUpdatedRows > 0n
  })
}

/** Files an account's request; see `ManagedAccessStore.addManagedRequest`. */
export function addRequest(
  db: Kysely<Tables>,
  { id, accountId, createdAtMs }: Pick<ManagedRequest, 'id' | 'accountId' | 'createdAtMs'>,
  maxRequests: number,
  record: AuditRecord,
): Promise<boolean> {
  return change(db, record, async (transaction) => {
    const rows = await transaction
      .selectFrom('managed_requests')
      .select('state')
      .where('account_id', '=', accountId)
      .limit(maxRequests)
      .execute()
    if (rows.length >= maxRequests || rows.some(({ state }) => openStates.some((open) => open === state))) return false
    await transaction
      .insertInto('managed_requests')
      .values({ id, account_id: accountId, state: 'requested', created_at_ms: createdAtMs, decided_at_ms: null })
      .execute()
    return true
  })
}

/** The request with that id, if any. */
export async function findManagedRequest(db: Kysely<Tables>, id: string): Promise<ManagedRequest | undefined> {
  const row = await db.selectFrom('managed_requests').selectAll().where('id', '=', id).executeTakeFirst()
  return row === undefined ? undefined : readRequest(row)
}

/** Requests, newest first. */
export async function listManagedRequests(
  db: Kysely<Tables>,
  { limit, accountId, state }: ManagedSelection,
): Promise<readonly ManagedRequest[]> {
  let query = db.selectFrom('managed_requests').selectAll()
  if (accountId !== undefined) query = query.where('account_id', '=', accountId)
  if (state !== undefined) query = query.where('state', '=', state)
  const rows = await query.orderBy('created_at_ms', 'desc').orderBy('id', 'desc').limit(limit).execute()
  return rows.map(readRequest)
}

/** Changes a request's state; false if its current state does not allow that. */
export function stepRequest(
  db: Kysely<Tables>,
  id: string,
  step: ManagedAction,
  atMs: number,
  record: AuditRecord,
): Promise<boolean> {
  return change(db, record, async (transaction) => {
    const result = await transaction
      .updateTable('managed_requests')
      .set({ state: step, decided_at_ms: Math.floor(atMs) })
      .where('id', '=', id)
      .where('state', 'in', [...managedTransitions[step]])
      .executeTakeFirstOrThrow()
    return result.numUpdatedRows > 0n
  })
}

/** Whether the account has an approved request. */
export async function hasApproved(db: Kysely<Tables>, accountId: string): Promise<boolean> {
  const row = await db
    .selectFrom('managed_requests')
    .select('id')
    .where('account_id', '=', accountId)
    .where('state', '=', 'approved')
    .executeTakeFirst()
  return row !== undefined
}

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
