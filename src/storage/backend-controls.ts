import type { Transaction } from 'kysely'
import type { BackendControlStore } from '../accounts/backends/backend-ports.ts'
import type { BackendControl, HoldReason } from '../domain/backend-controls.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { Tables } from './schema/schema.ts'

/** Maximum number of rows read: a configuration has fewer backends, with at most three rows each. */
const maxControls = 3_000

/** Operators' decisions about backends. */
export const backendControlStore = defineStore<BackendControlStore>({
  async listBackendControls(db) {
    const rows = await db
      .selectFrom('backend_controls')
      .selectAll()
      .orderBy('backend_id')
      .orderBy('kind')
      .limit(maxControls)
      .execute()
    return rows.map(({ backend_id: backendId, kind, at_ms: atMs, set_by: by, reason }) => ({
      backendId,
      kind: kind as BackendControl['kind'],
      atMs,
      by,
      reason: reason as HoldReason | null,
    }))
  },

  holdBackend(db, control, record) {
    return change(db, record, async (transaction) => {
      const known = await transaction
        .selectFrom('backend_controls')
        .select('kind')
        .where('backend_id', '=', control.backendId)
        .where('kind', '=', control.kind)
        .executeTakeFirst()
      if (known !== undefined) return false
      await put(transaction, control)
      return true
    })
  },

  undrainBackend(db, backendId, record) {
    return change(db, record, (transaction) => take(transaction, backendId, 'drained'))
  },

  async releaseBackend(db, backendId, by, record) {
    await change(db, record, async (transaction) => {
      await take(transaction, backendId, 'quarantined')
      await take(transaction, backendId, 'released')
      await put(transaction, { backendId, kind: 'released', atMs: record.atMs, by, reason: null })
      return true
    })
  },
})

async function put(transaction: Transaction<Tables>, control: BackendControl): Promise<void> {
  const { backendId, kind, atMs, by, reason } = control
  await transaction
    .insertInto('backend_controls')
    .values({ backend_id: backendId, kind, at_ms: Math.floor(atMs), set_by: by, reason })
    .execute()
}

async function take(
  transaction: Transaction<Tables>,
  backendId: string,
  kind: BackendControl['kind'],
): Promise<boolean> {
  const { numDeletedRows } = await transaction
    .deleteFrom('backend_controls')
    .where('backend_id', '=', backendId)
    .where('kind', '=', kind)
    .executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}
