import type { ExpressionBuilder, ExpressionWrapper, SqlBool, Transaction } from 'kysely'
import type { AccountDataStore } from '../accounts/ports.ts'
import { defineStore } from './define-store.ts'
import { readProof } from './proofs.ts'
import { change } from './revision.ts'
import type { Tables } from './schema/schema.ts'
import { readTicket } from './tickets.ts'

/** Tables whose rows belong to one account, ordered so that no row refers to a deleted one. */
const ownTables = [
  'sessions',
  'passkeys',
  'emails',
  'keys',
  'declared',
  'upstreams',
  'managed_requests',
  'upgrade_requests',
  'stored_responses',
  'conversation_items',
  'conversations',
  'generation_chunks',
  'generations',
  'cache_sessions',
  'budgets',
  'meters',
  'requests',
  'usage',
  'budget_spending',
  'budget_alerts',
  'alert_deliveries',
  'webhooks',
] as const satisfies readonly (keyof Tables)[]

/**
 * Settlements lock an account's requests in the order of their ids, and deleting them in the order of the table, so that
 * PostgreSQL may abort the deletion.
 */
const maxTries = 5

/** All data of one account, for export and deletion. */
export const accountDataStore = defineStore<Omit<AccountDataStore, 'findAccount'>>({
  async listUsedUnits(db, accountId, limit) {
    const rows = await db
      .selectFrom('usage')
      .select(['period_id', 'used'])
      .where('account_id', '=', accountId)
      .orderBy('period_id', 'desc')
      .limit(limit)
      .execute()
    return rows.map(({ period_id: periodId, used }) => ({ periodId, used }))
  },

  async listProofs(db, accountId, limit) {
    const rows = await db
      .selectFrom('sign_in_proofs')
      .selectAll()
      .where((row) =>
        row.or([
          row('account_id', '=', accountId),
          // A proof that another account requested for such an address belongs to that account.
          row.and([
            row('account_id', 'is', null),
            row('address', 'in', row.selectFrom('emails').select('address').where('account_id', '=', accountId)),
          ]),
        ]),
      )
      .orderBy('created_at_ms', 'desc')
      .orderBy('id')
      .limit(limit)
      .execute()
    return rows.map(readProof)
  },

  async listOwnTickets(db, accountId, limit) {
    const rows = await db
      .selectFrom('tickets')
      .selectAll()
      .where(isTicketOf(accountId))
      .orderBy('id', 'desc')
      .limit(limit)
      .execute()
    return rows.map(readTicket)
  },

  async deleteAccount(db, accountId, nowMs, record) {
    for (let tries = 1; ; tries++) {
      try {
        return await change(db, record, (transaction) => deleteAccountRows(transaction, accountId, nowMs))
      } catch (error) {
        if (tries === maxTries || !isConflict(error)) throw error
      }
    }
  },
})

/** Whether the database aborted the transaction for another one: a deadlock, or a conflict of concurrent changes. */
function isConflict(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === '40P01' || error.code === '40001')
}

/** Deletes all data of one account. Returns false if there is no such account. */
export async function deleteAccountRows(
  transaction: Transaction<Tables>,
  accountId: string,
  nowMs: number,
): Promise<boolean> {
  const known = await transaction.selectFrom('accounts').select('id').where('id', '=', accountId).executeTakeFirst()
  if (known === undefined) return false
  await deleteProofs(transaction, accountId)
  // Also before the addresses that identify them.
  await transaction.deleteFrom('tickets').where(isTicketOf(accountId)).execute()
  await transaction
    .deleteFrom('stored_items')
    .where('response_id', 'in', (row) =>
      row.selectFrom('stored_responses').select('id').where('account_id', '=', accountId),
    )
    .execute()
  await deleteProviderErrors(transaction, accountId)
  for (const table of ownTables) await transaction.deleteFrom(table).where('account_id', '=', accountId).execute()
  await giveUpBilling(transaction, accountId, nowMs)
  await transaction.deleteFrom('accounts').where('id', '=', accountId).execute()
  // Last: concurrent writers to these tables locked the account until now, and find none from here on.
  await transaction.deleteFrom('refused_requests').where('account_id', '=', accountId).execute()
  return true
}

/**
 * A ticket filed without signing in belongs to the account with that verified address (contract 27.3); one filed by
 * another account belongs to that account.
 */
function isTicketOf(accountId: string) {
  return (row: ExpressionBuilder<Tables, 'tickets'>): ExpressionWrapper<Tables, 'tickets', SqlBool> =>
    row.or([
      row('account_id', '=', accountId),
      row.and([
        row('account_id', 'is', null),
        row('reply_to', 'in', row.selectFrom('emails').select('address').where('account_id', '=', accountId)),
      ]),
    ])
}

/**
 * Deletes errors of its own backends, and other backends' errors for its requests. Before the requests that identify
 * them.
 */
async function deleteProviderErrors(transaction: Transaction<Tables>, accountId: string): Promise<void> {
  await transaction
    .deleteFrom('provider_errors')
    .where((row) =>
      row.or([
        row('account_id', '=', accountId),
        row('request_id', 'in', row.selectFrom('requests').select('id').where('account_id', '=', accountId)),
      ]),
    )
    .execute()
}

/** Before the addresses that identify them. */
async function deleteProofs(transaction: Transaction<Tables>, accountId: string): Promise<void> {
  await transaction
    .deleteFrom('sign_in_proofs')
    .where((row) =>
      row.or([
        row('account_id', '=', accountId),
        row('address', 'in', row.selectFrom('emails').select('address').where('account_id', '=', accountId)),
      ]),
    )
    .execute()
}

/** Billing that may still be charged stays until it is canceled; the rest is deleted now. */
async function giveUpBilling(transaction: Transaction<Tables>, accountId: string, nowMs: number): Promise<void> {
  await transaction.deleteFrom('billing').where('account_id', '=', accountId).where('customer_id', 'is', null).execute()
  await transaction
    .updateTable('billing')
    .set((row) => ({
      closing_since_ms: row.fn.coalesce('closing_since_ms', row.val(Math.floor(nowMs))),
      check_at_ms: Math.floor(nowMs),
    }))
    .where('account_id', '=', accountId)
    .execute()
}
