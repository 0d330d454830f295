import type { SupportStore } from '../accounts/support/support-ports.ts'
import type { Ticket } from '../domain/tickets.ts'
import { appendEntry } from './audit.ts'
import { defineStore } from './define-store.ts'
import type { TicketRow } from './schema/schema-service.ts'

/** Support tickets. */
export const ticketStore = defineStore<SupportStore>({
  async addTicket(db, ticket, forgetBeforeMs, maxKept) {
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
  },

  /** IDs sort by time. */
  async listTickets(db, limit, { state, from = 0 } = {}) {
    let query = db.selectFrom('tickets').selectAll().orderBy('id', 'desc').limit(limit).offset(from)
    if (state !== undefined) query = query.where('closed_at_ms', state === 'open' ? 'is' : 'is not', null)
    return (await query.execute()).map(readTicket)
  },

  /** An index answers this without reading texts. */
  async countTickets(db) {
    const count = async (is: 'is' | 'is not'): Promise<number> => {
      const { tickets } = await db
        .selectFrom('tickets')
        .select(({ fn }) => fn.countAll<number>().as('tickets'))
        .where('closed_at_ms', is, null)
        .executeTakeFirstOrThrow()
      return tickets
    }
    return { open: await count('is'), closed: await count('is not') }
  },

  async findTicket(db, id) {
    const row = await db.selectFrom('tickets').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? undefined : readTicket(row)
  },

  closeTicket(db, id, closedAtMs, record) {
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
  },
})

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
