import type { Ticket } from '../domain/tickets.ts'
import { operatorOf, recordOf, type ControlPlane } from './control-plane.ts'
import { AccountsError } from './refusals.ts'
import type { SupportStore } from './support-ports.ts'

/** What closing tickets needs. */
export type TicketPlane = Omit<ControlPlane<Pick<SupportStore, 'findTicket' | 'closeTicket'>>, 'pepper' | 'random'>

/** Closes or reopens a ticket. @throws AccountsError `operator_only`, `ticket_unknown`, `ticket_stands_so` */
export async function markTicket(plane: TicketPlane, ticketId: string, to: 'closed' | 'reopened'): Promise<Ticket> {
  operatorOf(plane.actor)
  const ticket = await plane.store.findTicket(ticketId)
  if (ticket === undefined) throw new AccountsError('ticket_unknown')
  const record = recordOf(plane, { type: `ticket.${to}`, ticketId })
  const closedAtMs = to === 'closed' ? record.atMs : null
  if (!(await plane.store.closeTicket(ticketId, closedAtMs, record))) throw new AccountsError('ticket_stands_so')
  return { ...ticket, closedAtMs }
}
