import { markTicket } from '../../accounts/support/tickets.ts'
import type { Command } from '../command.ts'

export const ticketsClose = mark('close', 'closed', 'Close a ticket.')
export const ticketsReopen = mark('reopen', 'reopened', 'Reopen a closed ticket.')

function mark(verb: string, to: 'closed' | 'reopened', summary: string): Command {
  return {
    name: `tickets ${verb}`,
    summary,
    arguments: ['TICKET'],
    options: [],
    example: `tickets ${verb} tic_…`,
    run(invocation) {
      const id = invocation.argument(0, 'the id of the ticket', 'tickets list')
      return invocation.withStore(async ({ accountsDeps, tickets }) => {
        const ticket = await markTicket({ ...accountsDeps, store: tickets }, id, to)
        return { text: ticket.id, json: ticket, talk: [`Next: ${invocation.command('tickets list')}`] }
      })
    },
  }
}
