import type { Kysely } from 'kysely'
import type { Ticket } from '../domain/tickets.ts'
import type { Tables, TicketRow } from './schema.ts'

/** Keeps a ticket; see `SupportStore.addTicket`. */
export async function addTicket(
  db: Kysely<Tables>,
  ticket: Ticket,
  forgetBeforeMs: number,
  maxKept: number,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await transaction
      .insertInto('tickets')
      .values({
        id: ticket.id,
        account_id: ticket.accountId,
        reply_to: ticket.replyTo,
        request_id: ticket.requestId,
        body: ticket.text,
        created_at_ms: ticket.createdAtMs,
      })
      .execute()
    const kept = transaction.selectFrom('tickets').select('id').orderBy('id', 'desc').limit(maxKept)
    await transaction
      .deleteFrom('tickets')
      .where((row) => row.or([row('created_at_ms', '<', forgetBeforeMs), row('id', 'not in', kept)]))
      .execute()
  })
}

/** Newest first: ids sort by time. */
export async function listTickets(db: Kysely<Tables>, limit: number): Promise<readonly Ticket[]> {
  const rows = await db.selectFrom('tickets').selectAll().orderBy('id', 'desc').limit(limit).execute()
  return rows.map(readTicket)
}

/** A ticket from its row. */
export function readTicket(row: TicketRow): Ticket {
  return {
    id: row.id,
    accountId: row.account_id,
    replyTo: row.reply_to,
    requestId: row.request_id,
    text: row.body,
    createdAtMs: row.created_at_ms,
  }
}
