import type { ExpressionBuilder, ExpressionWrapper, Kysely, SqlBool, Transaction } from 'kysely'
import type { AuditRecord } from '../domain/audit.ts'
import type { SignInProof } from '../domain/identity.ts'
import type { Ticket } from '../domain/tickets.ts'
import { readProof } from './proofs.ts'
import { change } from './revision.ts'
import type { Tables } from './schema.ts'
import { readTicket } from './tickets.ts'

/** Tables whose rows are an account's alone, in an order in which nothing refers to what is gone. */
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

/** Units that an account used, month by month, the latest first. */
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

/** Proofs that an account asked for, or nobody who was signed in for its addresses, the latest first. */
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
        // What another account asked for such an address names that account, and is its own.
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

/** What an account asked of support, signed in or by one of its addresses, the latest first. */
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

/** What nobody was signed in for belongs to whose proven address it names; what another account asked is that account's. */
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

/** Deletes an account with everything about it; see `HoldingsStore.deleteAccount`. */
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
    // Before the addresses by which they are found, too.
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
    // Last: whoever was adding to these held the account until now, and finds none from here on.
    await transaction.deleteFrom('refused_requests').where('account_id', '=', accountId).execute()
    return true
  })
}

/** Those of its own backends, and what others' backends said to its requests. Before the requests by which they are found. */
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

/** Before the addresses by which they are found. */
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

/** What may still be paid for stays until it is cancelled; the rest goes at once. */
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
