import type { Webhook, WebhookQueries } from '../accounts/alerts/alert-ports.ts'
import { hasAccount, insertDelivery, readDelivery } from './alerts.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { WebhookRow } from './schema/schema-alerts.ts'

/** Webhooks of accounts, and their messages. */
export const webhookStore = defineStore<WebhookQueries>({
  async listWebhooks(db, accountId) {
    const rows = await db
      .selectFrom('webhooks')
      .selectAll()
      .where('account_id', '=', accountId)
      .orderBy('created_at_ms')
      .orderBy('id')
      .execute()
    return rows.map(readWebhook)
  },

  addWebhook(db, webhook, maxWebhooks, record) {
    return change(db, record, async (transaction) => {
      const { accountId } = webhook
      if (!(await hasAccount(transaction, accountId))) return false
      const known = await transaction.selectFrom('webhooks').select('id').where('account_id', '=', accountId).execute()
      // Changes are made one after another, so nobody else adds one meanwhile.
      if (known.length >= maxWebhooks) return false
      await transaction.insertInto('webhooks').values(webhookRow(webhook)).execute()
      return true
    })
  },

  rotateWebhook(db, webhook, record) {
    return change(db, record, async (transaction) => {
      const { sealed_secret, sealed_previous, previous_until_ms } = webhookRow(webhook)
      const result = await transaction
        .updateTable('webhooks')
        .set({ sealed_secret, sealed_previous, previous_until_ms })
        .where('account_id', '=', webhook.accountId)
        .where('id', '=', webhook.id)
        .executeTakeFirstOrThrow()
      return result.numUpdatedRows > 0n
    })
  },

  removeWebhook(db, accountId, webhookId, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .deleteFrom('webhooks')
        .where('account_id', '=', accountId)
        .where('id', '=', webhookId)
        .executeTakeFirstOrThrow()
      if (result.numDeletedRows === 0n) return false
      await transaction
        .deleteFrom('alert_deliveries')
        .where('account_id', '=', accountId)
        .where('target', '=', webhookId)
        .execute()
      return true
    })
  },

  addWebhookDelivery(db, delivery) {
    return db.transaction().execute(async (transaction) => {
      if (!(await hasAccount(transaction, delivery.accountId))) return false
      const known = await transaction
        .selectFrom('webhooks')
        .select('id')
        .where('account_id', '=', delivery.accountId)
        .where('id', '=', delivery.target)
        .executeTakeFirst()
      return known !== undefined && (await insertDelivery(transaction, delivery))
    })
  },

  async listWebhookDeliveries(db, accountId, webhookId, limit) {
    const rows = await db
      .selectFrom('alert_deliveries')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('channel', '=', 'webhook')
      .$if(webhookId !== undefined, (query) => query.where('target', '=', webhookId!))
      .orderBy('id', 'desc')
      .limit(limit)
      .execute()
    return rows.map((row) => ({
      ...readDelivery(row),
      state: row.state as 'waiting' | 'delivered' | 'failed',
      attempts: row.attempts,
      result: row.result,
      attemptedAtMs: row.attempted_at_ms,
      dueAtMs: row.due_at_ms === 0 ? row.created_at_ms : row.due_at_ms,
    }))
  },
})

function webhookRow(webhook: Webhook): WebhookRow {
  const { previousUntilMs } = webhook
  return {
    id: webhook.id,
    account_id: webhook.accountId,
    url: webhook.url,
    sealed_secret: webhook.sealedSecret,
    sealed_previous: webhook.sealedPrevious,
    previous_until_ms: previousUntilMs === null ? null : Math.floor(previousUntilMs),
    created_at_ms: Math.floor(webhook.createdAtMs),
  }
}

function readWebhook(row: WebhookRow): Webhook {
  return {
    id: row.id,
    accountId: row.account_id,
    url: row.url,
    sealedSecret: row.sealed_secret,
    sealedPrevious: row.sealed_previous,
    previousUntilMs: row.previous_until_ms,
    createdAtMs: row.created_at_ms,
  }
}
