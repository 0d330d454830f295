import type { UpgradeRequestQueries } from '../accounts/billing/ports.ts'
import type { UpgradeRequest, UpgradeState } from '../domain/billing.ts'
import { putOnPlan } from './accounts.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { UpgradeRequestRow } from './schema/schema.ts'

/** Requests for another plan. */
export const upgradeRequestStore = defineStore<UpgradeRequestQueries>({
  /** An index keeps the open request unique. */
  async addUpgradeRequest(db, request, maxKept, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .insertInto('upgrade_requests')
        .values({
          id: request.id,
          account_id: request.accountId,
          plan_id: request.planId,
          state: request.state,
          created_at_ms: Math.floor(request.createdAtMs),
          decided_at_ms: request.decidedAtMs,
        })
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirstOrThrow()
      if ((result.numInsertedOrUpdatedRows ?? 0n) === 0n) return false
      const retained = await transaction
        .selectFrom('upgrade_requests')
        .select('id')
        .where('account_id', '=', request.accountId)
        .where('state', '<>', 'requested')
        .orderBy('created_at_ms', 'desc')
        .orderBy('id', 'desc')
        .limit(maxKept)
        .execute()
      await transaction
        .deleteFrom('upgrade_requests')
        .where('account_id', '=', request.accountId)
        .where('state', '<>', 'requested')
        .where('id', 'not in', ['', ...retained.map(({ id }) => id)])
        .execute()
      return true
    })
  },

  async findUpgradeRequest(db, id) {
    const row = await db.selectFrom('upgrade_requests').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? undefined : readRequest(row)
  },

  async listUpgradeRequests(db, { limit, accountId, onlyOpen = false }) {
    const rows = await db
      .selectFrom('upgrade_requests')
      .selectAll()
      .$if(accountId !== undefined, (query) => query.where('account_id', '=', accountId!))
      .$if(onlyOpen, (query) => query.where('state', '=', 'requested'))
      .orderBy('created_at_ms', 'desc')
      .orderBy('id', 'desc')
      .limit(limit)
      .execute()
    return rows.map(readRequest)
  },

  /** The decision and the plan change share one transaction. */
  decideUpgradeRequest(db, id, state, record) {
    return change(db, record, async (transaction) => {
      const row = await transaction
        .updateTable('upgrade_requests')
        .set({ state, decided_at_ms: Math.floor(record.atMs) })
        .where('id', '=', id)
        .where('state', '=', 'requested')
        .returning(['account_id', 'plan_id'])
        .executeTakeFirst()
      if (row === undefined) return false
      return state === 'approved' ? putOnPlan(transaction, row.account_id, row.plan_id) : true
    })
  },
})

function readRequest(row: UpgradeRequestRow): UpgradeRequest {
  return {
    id: row.id,
    accountId: row.account_id,
    planId: row.plan_id,
    state: row.state as UpgradeState,
    createdAtMs: row.created_at_ms,
    decidedAtMs: row.decided_at_ms,
  }
}
