import type { Kysely, Transaction } from 'kysely'
import type { AppliedRead, BillingRecord, ReadOutcome } from '../accounts/billing/ports.ts'
import type { AuditRecord } from '../domain/audit.ts'
import type { Subscription } from '../domain/billing.ts'
import { putOnPlan } from './accounts.ts'
import { change } from './revision.ts'
import type { BillingRow, Tables } from './schema/schema.ts'

/**
 * A round fails only if another read was applied meanwhile; this many concurrent reads of one account do not happen.
 */
const maxRounds = 20

/** An account's billing record, if any. */
export async function findBilling(db: Kysely<Tables>, accountId: string): Promise<BillingRecord | undefined> {
  const row = await findRow(db, accountId)
  return row === undefined ? undefined : readBilling(row)
}

/** The billing record of a linked customer, if any. */
export async function findBillingOf(db: Kysely<Tables>, customerId: string): Promise<BillingRecord | undefined> {
  const row = await db.selectFrom('billing').selectAll().where('customer_id', '=', customerId).executeTakeFirst()
  return row === undefined ? undefined : readBilling(row)
}

/** See `BillingStore.linkCustomer`. */
export async function linkCustomer(
  db: Kysely<Tables>,
  accountId: string,
  customerId: string,
  checkAtMs: number,
): Promise<string> {
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
}

/** See `BillingStore.takeRead`: one statement, so that no two reads get the same number. */
export async function takeRead(db: Kysely<Tables>, accountId: string): Promise<number> {
  const row = await db
    .updateTable('billing')
    .set((columns) => ({ reads: columns('reads', '+', 1) }))
    .where('account_id', '=', accountId)
    .returning('reads')
    .executeTakeFirstOrThrow()
  return row.reads
}

/**
 * See `BillingStore.applyRead`. Only a plan change increments the revision, because that clears every node's key cache,
 * and subscriptions are read far more often than they change.
 */
export async function applyRead(db: Kysely<Tables>, read: AppliedRead): Promise<ReadOutcome> {
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
    const isWritten = isChange ? await change(db, recordOf(read, grant), work) : await db.transaction().execute(work)
    if (isWritten) return isChange ? 'changed' : 'unchanged'
  }
  throw new Error('a billing read kept conflicting with other reads of the same account')
}

function recordOf(read: AppliedRead, grant: string | null): AuditRecord {
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

/** See `BillingStore.hastenCheck`. */
export async function hastenCheck(db: Kysely<Tables>, accountId: string, atMs: number): Promise<void> {
  await db
    .updateTable('billing')
    .set({ check_at_ms: Math.floor(atMs) })
    .where('account_id', '=', accountId)
    .where('check_at_ms', '>', Math.floor(atMs))
    .execute()
}

/** See `BillingStore.postponeCheck`. */
export async function postponeCheck(db: Kysely<Tables>, accountId: string, atMs: number): Promise<void> {
  await db
    .updateTable('billing')
    .set({ check_at_ms: Math.floor(atMs) })
    .where('account_id', '=', accountId)
    .execute()
}

/** See `BillingStore.claimChecks`: a check that two nodes find at once goes to one of them. */
export async function claimChecks(
  db: Kysely<Tables>,
  nowMs: number,
  againAtMs: number,
  limit: number,
): Promise<readonly BillingRecord[]> {
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
}

/** See `BillingStore.beginClosing`. */
export async function beginClosing(db: Kysely<Tables>, accountId: string, nowMs: number): Promise<boolean> {
  const result = await db
    .updateTable('billing')
    .set((columns) => ({
      closing_since_ms: columns.fn.coalesce('closing_since_ms', columns.val(Math.floor(nowMs))),
      check_at_ms: Math.floor(nowMs),
    }))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return result.numUpdatedRows > 0n
}

/** Deletes an account's billing record. */
export async function removeBilling(db: Kysely<Tables>, accountId: string): Promise<void> {
  await db.deleteFrom('billing').where('account_id', '=', accountId).execute()
}

/** Whether an event was handled. */
export async function hasHandled(db: Kysely<Tables>, eventId: string): Promise<boolean> {
  const row = await db.selectFrom('billing_events').select('id').where('id', '=', eventId).executeTakeFirst()
  return row !== undefined
}

/** Records that an event was handled; idempotent. */
export async function noteHandled(db: Kysely<Tables>, eventId: string, nowMs: number): Promise<void> {
  await db
    .insertInto('billing_events')
    .values({ id: eventId, handled_at_ms: Math.floor(nowMs) })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

/** Deletes at most `limit` of the oldest events handled before `timeMs` and returns how many. */
export async function deleteEventsBefore(db: Kysely<Tables>, timeMs: number, limit: number): Promise<number> {
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
