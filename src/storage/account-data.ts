import {
  type ExpressionBuilder,
  type ExpressionWrapper,
  type Kysely,
  sql,
  type SqlBool,
  type Transaction,
} from 'kysely'
import type { AccountDataStore } from '../accounts/ports.ts'
import type { AuditRecord } from '../domain/audit.ts'
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
/** Requests deleted per transaction: admissions that share a batch with the account's wait meanwhile, and so does SQLite. */
const maxRequestsAtOnce = 1_000

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
    // A caller's transaction deletes everything or nothing.
    if (!db.isTransaction && (await hasManyRequests(db, accountId))) {
      await retried(() => suspend(db, accountId, record))
      while ((await retried(() => deleteEndedRequests(db, accountId))) === maxRequestsAtOnce);
    }
    return retried(() => change(db, record, (transaction) => deleteAccountRows(transaction, accountId, nowMs)))
  },
})

async function retried<Value>(work: () => Promise<Value>): Promise<Value> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (tries === maxTries || !isConflict(error)) throw error
    }
  }
}

/** Whether the database aborted the transaction for another one: a deadlock, or a conflict of concurrent changes. */
function isConflict(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === '40P01' || error.code === '40001')
}

async function hasManyRequests(db: Kysely<Tables>, accountId: string): Promise<boolean> {
  const { rows } = await sql`select 1 from requests where account_id = ${accountId}
    order by admitted_at_ms limit 1 offset ${maxRequestsAtOnce}`.execute(db)
  return rows.length > 0
}

/** Stops new requests of the account. If its deletion is interrupted afterwards, it stays suspended. */
function suspend(db: Kysely<Tables>, accountId: string, record: AuditRecord): Promise<boolean> {
  return change(db, { ...record, event: { type: 'account.suspended', accountId } }, async (transaction) => {
    const result = await transaction
      .updateTable('accounts')
      .set({ suspended: 1 })
      .where('id', '=', accountId)
      .where('suspended', '=', 0)
      .executeTakeFirstOrThrow()
    return result.numUpdatedRows > 0n
  })
}

/** Deletes some of an account's requests that have ended, and returns how many. */
function deleteEndedRequests(db: Kysely<Tables>, accountId: string): Promise<number> {
  return db.transaction().execute(async (transaction) => {
    const rows = await transaction
      .selectFrom('requests')
      .select('id')
      .where('account_id', '=', accountId)
      .where('state', 'in', ['done', 'lost'])
      .where('holds', 'is', null)
      .orderBy('admitted_at_ms')
      .limit(maxRequestsAtOnce)
      .execute()
    if (rows.length === 0) return 0
    const ids = rows.map(({ id }) => id)
    await transaction.deleteFrom('provider_errors').where('request_id', 'in', ids).execute()
    await transaction.deleteFrom('requests').where('id', 'in', ids).execute()
    return rows.length
  })
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
