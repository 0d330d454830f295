import { type Kysely, sql, type Transaction } from 'kysely'
import type { AlertChannel, AlertQueries, ClaimedDelivery, NewDelivery } from '../accounts/alerts/alert-ports.ts'
import { maxDeliveryAgeMs } from '../domain/alerts.ts'
import { defineStore } from './define-store.ts'
import { isOnSqlite } from './engine.ts'
import type { AlertDeliveryRow } from './schema/schema-alerts.ts'
import type { Tables } from './schema/schema.ts'

/**
 * A message that is due later than this was scheduled before the clock was set back. The longest wait between two attempts
 * is shorter.
 */
const farAheadMs = 2 * 3_600_000

/** Messages to webhooks that one account may have waiting (contract 46.18). */
const maxWaiting = 100
/** Messages that are stored for each webhook, besides those that wait. */
const shownPerWebhook = 100
const webhookChannel: AlertChannel = 'webhook'

/** Alerts of budgets, and the messages about them. */
export const alertStore = defineStore<AlertQueries>({
  async listBudgetedAccounts(db, afterId, limit, onlyWithWebhooks) {
    const rows = await db
      .selectFrom('budgets')
      .select('account_id')
      .distinct()
      .where('account_id', '>', afterId)
      .$if(onlyWithWebhooks, (query) =>
        query.where('account_id', 'in', (row) => row.selectFrom('webhooks').select('account_id')),
      )
      .orderBy('account_id')
      .limit(limit)
      .execute()
    return rows.map((row) => row.account_id)
  },

  async hasBudgetRefusals(
    db,
    { accountId, scope, subject, formerKeys = [] },
    sinceMs,
    beforeMs = Number.MAX_SAFE_INTEGER,
  ) {
    const keys = [subject, ...formerKeys]
    const refused = await db
      .selectFrom('refused_requests')
      .select('last_at_ms')
      .where('account_id', '=', accountId)
      .where('code', '=', 'budget_exceeded')
      .where('last_at_ms', '>=', Math.floor(sinceMs))
      .where('last_at_ms', '<', beforeMs)
      .$if(scope === 'key', (query) => query.where('last_key_id', 'in', keys))
      .orderBy('last_at_ms', 'desc')
      .limit(1)
      .executeTakeFirst()
    if (refused === undefined) return false
    const admitted = await db
      .selectFrom('requests')
      .select('id')
      .where('account_id', '=', accountId)
      .where('admitted_at_ms', '>', refused.last_at_ms)
      .where('admitted_at_ms', '<', beforeMs)
      .$if(scope === 'key', (query) => query.where('key_id', 'in', keys))
      .$if(scope === 'profile', (query) => query.where('profile', '=', subject))
      .limit(1)
      .executeTakeFirst()
    return admitted === undefined
  },

  async hasBudgetAlert(db, budgetId, windowMs, threshold) {
    const row = await db
      .selectFrom('budget_alerts')
      .select('threshold')
      .where('budget_id', '=', budgetId)
      .where('window_ms', '=', windowMs)
      .where('threshold', '=', threshold)
      .executeTakeFirst()
    return row !== undefined
  },

  addBudgetAlert(db, { budgetId, windowMs, thresholds, accountId, atMs }, deliveries) {
    return db.transaction().execute(async (transaction) => {
      if (!(await hasAccount(transaction, accountId))) return false
      // The last one first: of several nodes, those that come later wait for it, and find it there.
      for (const threshold of thresholds.toReversed()) {
        const result = await transaction
          .insertInto('budget_alerts')
          .values({ budget_id: budgetId, window_ms: windowMs, threshold, account_id: accountId, at_ms: atMs })
          .onConflict((conflict) => conflict.doNothing())
          .executeTakeFirst()
        const isNew = (result.numInsertedOrUpdatedRows ?? 0n) > 0n
        if (threshold === thresholds.at(-1) && !isNew) return false
      }
      for (const delivery of deliveries) await insertDelivery(transaction, delivery)
      return true
    })
  },

  async claimDeliveries(db, { channel, nowMs, leaseMs, limit, except }) {
    const now = Math.floor(nowMs)
    const due = db
      .selectFrom('alert_deliveries')
      .selectAll()
      .select(sql<number>`row_number() over (partition by account_id order by due_at_ms, id)`.as('place'))
      .where('channel', '=', channel)
      .where((row) => row.or([row('due_at_ms', '<=', now), row('due_at_ms', '>', now + farAheadMs)]))
      .where('created_at_ms', '>', now - maxDeliveryAgeMs)
      .$if(except.length > 0, (query) => query.where('account_id', 'not in', [...except]))
    const rows = await db
      .selectFrom(due.as('due'))
      .selectAll()
      .where('place', '=', 1)
      .orderBy('due_at_ms')
      .orderBy('id')
      .limit(limit)
      .execute()
    const claimed: ClaimedDelivery[] = []
    for (const row of rows) {
      const attempt = row.attempts + 1
      const result = await db
        .updateTable('alert_deliveries')
        .set({ attempts: attempt, due_at_ms: now + leaseMs })
        .where('id', '=', row.id)
        .where('attempts', '=', row.attempts)
        .where('state', '=', 'waiting')
        .executeTakeFirstOrThrow()
      if (result.numUpdatedRows > 0n) claimed.push({ ...readDelivery(row), attempt })
    }
    return claimed
  },

  async endAttempt(db, { id, attempt }, { state, result, nowMs, dueAtMs }) {
    const now = Math.floor(nowMs)
    const ended = await db
      .updateTable('alert_deliveries')
      .set({ state, result, attempted_at_ms: now, due_at_ms: dueAtMs === null ? null : Math.floor(dueAtMs) })
      .where('id', '=', id)
      .where('attempts', '=', attempt)
      .where('state', '=', 'waiting')
      .returning(['account_id', 'channel', 'target'])
      .executeTakeFirst()
    if (ended === undefined) return
    if (state !== 'waiting') await forgetDone(db, id, ended)
    // Accounts take turns: what else this one has waiting comes after what others have waiting now.
    await db
      .updateTable('alert_deliveries')
      .set({ due_at_ms: now })
      .where('account_id', '=', ended.account_id)
      .where('channel', '=', ended.channel)
      .where('due_at_ms', '<', now)
      .execute()
  },

  async deleteAlertsBefore(db, timeMs, limit) {
    const before = Math.floor(timeMs)
    const alerts = await sql`delete from budget_alerts where (budget_id, window_ms, threshold) in (
      select budget_id, window_ms, threshold from budget_alerts where at_ms < ${before} order by at_ms limit ${limit})`.execute(
      db,
    )
    const deliveries = await sql`delete from alert_deliveries where id in (
      select id from alert_deliveries where created_at_ms < ${before} order by created_at_ms limit ${limit})`.execute(
      db,
    )
    return Math.max(Number(alerts.numAffectedRows ?? 0), Number(deliveries.numAffectedRows ?? 0))
  },
})

/**
 * The account sees the latest messages to its webhooks. Nobody looks at others again, and they may contain an address.
 */
async function forgetDone(
  db: Kysely<Tables>,
  id: string,
  { channel, target }: Pick<AlertDeliveryRow, 'channel' | 'target'>,
): Promise<void> {
  const done = db.deleteFrom('alert_deliveries').where('state', '<>', 'waiting')
  if (channel !== webhookChannel) return void (await done.where('id', '=', id).execute())
  const oldest = db
    .selectFrom('alert_deliveries')
    .select('id')
    .where('target', '=', target)
    .orderBy('id', 'desc')
    .limit(1)
    .offset(shownPerWebhook - 1)
  await done.where('target', '=', target).where('id', '<', oldest).execute()
}

/** Whether the account exists. On PostgreSQL, it is not deleted before the transaction ends; SQLite has one writer. */
export async function hasAccount(transaction: Transaction<Tables>, accountId: string): Promise<boolean> {
  const isSqlite = isOnSqlite(transaction)
  const row = await transaction
    .selectFrom('accounts')
    .select('id')
    .where('id', '=', accountId)
    .$if(!isSqlite, (query) => query.forKeyShare())
    .executeTakeFirst()
  return row !== undefined
}

/** False if it exists, or if too many messages to webhooks of the account are waiting. */
export async function insertDelivery(db: Kysely<Tables>, delivery: NewDelivery): Promise<boolean> {
  const atMs = Math.floor(delivery.atMs)
  if (delivery.channel === webhookChannel && (await countWaiting(db, delivery.accountId, atMs)) >= maxWaiting)
    return false
  const result = await db
    .insertInto('alert_deliveries')
    .values({
      id: delivery.id,
      event_id: delivery.eventId,
      account_id: delivery.accountId,
      channel: delivery.channel,
      target: delivery.target,
      body: delivery.body,
      state: 'waiting',
      attempts: 0,
      result: null,
      created_at_ms: atMs,
      attempted_at_ms: null,
      // At once, also if the clock of the node that adds it is ahead of the one that all nodes share.
      due_at_ms: 0,
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

async function countWaiting(db: Kysely<Tables>, accountId: string, nowMs: number): Promise<number> {
  const rows = await db
    .selectFrom('alert_deliveries')
    .select('id')
    .where('account_id', '=', accountId)
    .where('channel', '=', webhookChannel)
    .where('created_at_ms', '>', nowMs - maxDeliveryAgeMs)
    .where('state', '=', 'waiting')
    .limit(maxWaiting)
    .execute()
  return rows.length
}

export function readDelivery(row: AlertDeliveryRow): NewDelivery {
  return {
    id: row.id,
    eventId: row.event_id,
    accountId: row.account_id,
    channel: row.channel as AlertChannel,
    target: row.target,
    body: row.body,
    atMs: row.created_at_ms,
  }
}
