import type { Ticket } from '../../domain/tickets.ts'
import { AccountsError } from '../accounts-error.ts'
import { operatorOf, auditRecord, type AccountsDeps } from '../control-plane.ts'
import type { SupportStore } from './support-ports.ts'

/** What closing tickets needs. */
export type TicketDeps = Omit<AccountsDeps<Pick<SupportStore, 'findTicket' | 'closeTicket'>>, 'pepper' | 'random'>

/** Closes or reopens a ticket. @throws AccountsError `operator_only`, `ticket_unknown`, `ticket_unchanged` */
export async function markTicket(deps: TicketDeps, ticketId: string, to: 'closed' | 'reopened'): Promise<Ticket> {
  operatorOf(deps.actor)
  const ticket = await deps.store.findTicket(ticketId)
  if (ticket === undefined) throw new AccountsError('ticket_unknown')
  const record = auditRecord(deps, { type: `ticket.${to}`, ticketId })
  const closedAtMs = to === 'closed' ? record.atMs : null
  if (!(await deps.store.closeTicket(ticketId, closedAtMs, record))) throw new AccountsError('ticket_unchanged')
  return { ...ticket, closedAtMs }
}
