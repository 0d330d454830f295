import type { Kysely, Transaction } from 'kysely'
import type { BillingQueries, AppliedRead, BillingRecord } from '../accounts/billing/ports.ts'
import type { AuditRecord } from '../domain/audit.ts'
import type { Subscription } from '../domain/billing.ts'
import { putOnPlan } from './accounts.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { BillingRow, Tables } from './schema/schema.ts'

/**
 * A round fails only if another read was applied meanwhile; this many concurrent reads of one account do not happen.
 */
const maxRounds = 20

/** Billing records and handled events. */
export const billingStore = defineStore<BillingQueries>({
  async findBilling(db, accountId) {
    const row = await findRow(db, accountId)
    return row === undefined ? undefined : readBilling(row)
  },

  async findBillingOf(db, customerId) {
    const row = await db.selectFrom('billing').selectAll().where('customer_id', '=', customerId).executeTakeFirst()
    return row === undefined ? undefined : readBilling(row)
  },

  async linkCustomer(db, accountId, customerId, checkAtMs) {
    await db
      .insertInto('billing')
      .values({ account_id: accountId, customer_id: customerId, reads: 0, applied_read: 0, check_at_ms: checkAtMs })
      .onConflict((conflict) => conflict.column('account_id').doNothing())
      .execute()
    const row = await db
      .selectFrom('billing')
      .select('customer_id')
      .where('account_id', '=', accountId)
      .executeTakeFirstOrThrow()
    return row.customer_id ?? customerId
  },

  /** One statement, so that no two reads get the same number. */
  async takeRead(db, accountId) {
    const row = await db
      .updateTable('billing')
      .set((columns) => ({ reads: columns('reads', '+', 1) }))
      .where('account_id', '=', accountId)
      .returning('reads')
      .executeTakeFirstOrThrow()
    return row.reads
  },

  /**
   * Only a plan change increments the revision, because that clears every node's key cache, and subscriptions are read
   * far more often than they change.
   */
  async applyRead(db, read) {
    for (let round = 0; round < maxRounds; round++) {
      const row = await findRow(db, read.accountId)
      if (row === undefined || row.applied_read >= read.read) {
        if (read.eventId !== undefined) await noteHandled(db, read.eventId, read.nowMs)
        return 'stale'
      }
      const grant = read.grant === undefined ? row.granted_plan_id : read.grant
      const isChange = grant !== row.granted_plan_id
      const work = async (transaction: Transaction<Tables>): Promise<boolean> => {
        if (!(await writeRead(transaction, row, read, grant))) return false
        if (read.eventId !== undefined) await noteHandled(transaction, read.eventId, read.nowMs)
        // A deleted account has no plan; the next read notices that and closes its billing.
        if (isChange) await putOnPlan(transaction, read.accountId, grant ?? read.planWithoutGrant)
        return true
      }
      const isWritten = isChange
        ? await change(db, planChangeRecord(read, grant), work)
        : await db.transaction().execute(work)
      if (isWritten) return isChange ? 'changed' : 'unchanged'
    }
    throw new Error('a billing read kept conflicting with other reads of the same account')
  },

  async scheduleCheckNow(db, accountId, atMs) {
    await db
      .updateTable('billing')
      .set({ check_at_ms: Math.floor(atMs) })
      .where('account_id', '=', accountId)
      .where('check_at_ms', '>', Math.floor(atMs))
      .execute()
  },

  async postponeCheck(db, accountId, atMs) {
    await db
      .updateTable('billing')
      .set({ check_at_ms: Math.floor(atMs) })
      .where('account_id', '=', accountId)
      .execute()
  },

  /** A check that two nodes find at once goes to one of them. */
  async claimChecks(db, nowMs, againAtMs, limit) {
    const due = await db
      .selectFrom('billing')
      .selectAll()
      .where('check_at_ms', '<=', Math.floor(nowMs))
      .where('customer_id', 'is not', null)
      .orderBy('check_at_ms')
      .limit(limit)
      .execute()
    const claimed: BillingRecord[] = []
    for (const row of due) {
      const result = await db
        .updateTable('billing')
        .set({ check_at_ms: Math.floor(againAtMs) })
        .where('account_id', '=', row.account_id)
        .where('check_at_ms', '=', row.check_at_ms)
        .executeTakeFirstOrThrow()
      if (result.numUpdatedRows > 0n) claimed.push(readBilling(row))
    }
    return claimed
  },

  async beginClosing(db, accountId, nowMs) {
    const result = await db
      .updateTable('billing')
      .set((columns) => ({
        closing_since_ms: columns.fn.coalesce('closing_since_ms', columns.val(Math.floor(nowMs))),
        check_at_ms: Math.floor(nowMs),
      }))
      .where('account_id', '=', accountId)
      .executeTakeFirstOrThrow()
    return result.numUpdatedRows > 0n
  },

  async removeBilling(db, accountId) {
    await db.deleteFrom('billing').where('account_id', '=', accountId).execute()
  },

  async hasHandled(db, eventId) {
    const row = await db.selectFrom('billing_events').select('id').where('id', '=', eventId).executeTakeFirst()
    return row !== undefined
  },
  noteHandled,

  async deleteEventsBefore(db, timeMs, limit) {
    const result = await db
      .deleteFrom('billing_events')
      .where('id', 'in', (rows) =>
        rows
          .selectFrom('billing_events')
          .select('id')
          .where('handled_at_ms', '<', Math.floor(timeMs))
          .orderBy('handled_at_ms')
          .limit(limit),
      )
      .executeTakeFirstOrThrow()
    return Number(result.numDeletedRows)
  },
})

function planChangeRecord(read: AppliedRead, grant: string | null): AuditRecord {
  const planId = grant ?? read.planWithoutGrant
  return {
    actor: { kind: 'system' },
    atMs: read.nowMs,
    event: { type: 'account.plan_changed', accountId: read.accountId, planId },
  }
}

async function writeRead(
  transaction: Transaction<Tables>,
  row: BillingRow,
  read: AppliedRead,
  grant: string | null,
): Promise<boolean> {
  const result = await transaction
    .updateTable('billing')
    .set({
      applied_read: read.read,
      granted_plan_id: grant,
      subscription: read.subscription === null ? null : JSON.stringify(read.subscription),
      read_at_ms: Math.floor(read.nowMs),
      check_at_ms: Math.floor(read.checkAtMs),
    })
    .where('account_id', '=', read.accountId)
    // The checks from before the transaction still hold: no other read was applied.
    .where('applied_read', '=', row.applied_read)
    .executeTakeFirstOrThrow()
  return result.numUpdatedRows > 0n
}

/** Records that an event was handled; idempotent. */
async function noteHandled(db: Kysely<Tables>, eventId: string, nowMs: number): Promise<void> {
  await db
    .insertInto('billing_events')
    .values({ id: eventId, handled_at_ms: Math.floor(nowMs) })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

function findRow(db: Kysely<Tables>, accountId: string): Promise<BillingRow | undefined> {
  return db.selectFrom('billing').selectAll().where('account_id', '=', accountId).executeTakeFirst()
}

function readBilling(row: BillingRow): BillingRecord {
  return {
    accountId: row.account_id,
    customerId: row.customer_id,
    grantedPlanId: row.granted_plan_id,
    subscription: row.subscription === null ? null : (JSON.parse(row.subscription) as Subscription),
    readAtMs: row.read_at_ms,
    checkAtMs: row.check_at_ms,
    closingSinceMs: row.closing_since_ms,
  }
}
