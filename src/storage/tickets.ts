import type { Kysely } from 'kysely'
import type { TicketSelection } from '../accounts/support/support-ports.ts'
import type { AuditRecord } from '../domain/audit.ts'
import type { NewTicket, Ticket } from '../domain/tickets.ts'
import { appendEntry } from './audit.ts'
import type { TicketRow } from './schema/schema-service.ts'
import type { Tables } from './schema/schema.ts'

/** Stores a ticket; see `SupportStore.addTicket`. */
export async function addTicket(
  db: Kysely<Tables>,
  ticket: NewTicket,
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
        closed_at_ms: null,
      })
      .execute()
    const retained = transaction.selectFrom('tickets').select('id').orderBy('id', 'desc').limit(maxKept)
    await transaction
      .deleteFrom('tickets')
      .where((row) => row.or([row('created_at_ms', '<', forgetBeforeMs), row('id', 'not in', retained)]))
      .execute()
  })
}

/** Newest first: ids sort by time. */
export async function listTickets(
  db: Kysely<Tables>,
  limit: number,
  { state, from = 0 }: TicketSelection = {},
): Promise<readonly Ticket[]> {
  let query = db.selectFrom('tickets').selectAll().orderBy('id', 'desc').limit(limit).offset(from)
  if (state !== undefined) query = query.where('closed_at_ms', state === 'open' ? 'is' : 'is not', null)
  return (await query.execute()).map(readTicket)
}

/** The number of open and closed tickets, answered by an index without reading texts. */
export async function countTickets(db: Kysely<Tables>): Promise<{ readonly open: number; readonly closed: number }> {
  const count = async (is: 'is' | 'is not'): Promise<number> => {
    const { tickets } = await db
      .selectFrom('tickets')
      .select(({ fn }) => fn.countAll<number>().as('tickets'))
      .where('closed_at_ms', is, null)
      .executeTakeFirstOrThrow()
    return tickets
  }
  return { open: await count('is'), closed: await count('is not') }
}

/** The ticket with that id, if any. */
export async function findTicket(db: Kysely<Tables>, id: string): Promise<Ticket | undefined> {
  const row = await db.selectFrom('tickets').selectAll().where('id', '=', id).executeTakeFirst()
  return row === undefined ? undefined : readTicket(row)
}

/** Closes or reopens a ticket; see `SupportStore.closeTicket`. */
export function closeTicket(
  db: Kysely<Tables>,
  id: string,
  closedAtMs: number | null,
  record: AuditRecord,
): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable('tickets')
      .set({ closed_at_ms: closedAtMs })
      .where('id', '=', id)
      .where('closed_at_ms', closedAtMs === null ? 'is not' : 'is', null)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) return false
    await appendEntry(transaction, record)
    return true
  })
}

/** Converts a row to a ticket. */
export function readTicket(row: TicketRow): Ticket {
  return {
    id: row.id,
    accountId: row.account_id,
    replyTo: row.reply_to,
    requestId: row.request_id,
    text: row.body,
    createdAtMs: row.created_at_ms,
    closedAtMs: row.closed_at_ms,
  }
}
