import type { ExpressionBuilder, ExpressionWrapper, Kysely, SqlBool, Transaction } from 'kysely'
import type { AuditRecord } from '../domain/audit.ts'
import type { SignInProof } from '../domain/identity.ts'
import type { Ticket } from '../domain/tickets.ts'
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
  'upstreams',
  'managed_requests',
  'upgrade_requests',
  'stored_responses',
  'conversation_items',
  'conversations',
  'requests',
  'usage',
] as const satisfies readonly (keyof Tables)[]

/** Units an account used per month, the latest first. */
export async function listUsedUnits(
  db: Kysely<Tables>,
  accountId: string,
  limit: number,
): Promise<readonly { periodId: string; used: number }[]> {
  const rows = await db
    .selectFrom('usage')
    .select(['period_id', 'used'])
    .where('account_id', '=', accountId)
    .orderBy('period_id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(({ period_id: periodId, used }) => ({ periodId, used }))
}

/** Proofs requested by an account, or for its addresses by somebody not signed in, the latest first. */
export async function listProofs(
  db: Kysely<Tables>,
  accountId: string,
  limit: number,
): Promise<readonly SignInProof[]> {
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
}

/** An account's support tickets, filed while signed in or with one of its addresses, the latest first. */
export async function listOwnTickets(db: Kysely<Tables>, accountId: string, limit: number): Promise<readonly Ticket[]> {
  const rows = await db
    .selectFrom('tickets')
    .selectAll()
    .where(isTicketOf(accountId))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(readTicket)
}

/**
 * A ticket filed without signing in belongs to the account with that verified address; one filed by another account
 * belongs to that account.
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

/** Deletes an account and all its data; see `AccountDataStore.deleteAccount`. */
export function deleteAccount(
  db: Kysely<Tables>,
  accountId: string,
  nowMs: number,
  record: AuditRecord,
): Promise<boolean> {
  return change(db, record, async (transaction) => {
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
  })
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
