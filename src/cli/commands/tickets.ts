import { markTicket } from '../../accounts/support/tickets.ts'
import { terminalLine } from '../../runtime/safe-text.ts'
import type { Command } from '../command.ts'
import { writeTime } from '../terminal/table.ts'

const maxListed = 100

export const ticketsList: Command = {
  name: 'tickets list',
  summary: `List the latest ${maxListed} support tickets with their text, newest first.`,
  arguments: [],
  options: [{ name: 'open', summary: 'Only open tickets.' }],
  example: 'tickets list',
  run: (invocation) =>
    invocation.withStore(async ({ tickets }) => {
      const all = await tickets.listTickets(maxListed, invocation.line.flag('open') ? { state: 'open' } : {})
      const texts = all.map(({ id, replyTo, accountId, requestId, text, createdAtMs, closedAtMs }) =>
        [
          `${id}  ${writeTime(createdAtMs)}  ${closedAtMs === null ? 'open' : 'closed'}  ${terminalLine(replyTo)}`,
          `account ${accountId ?? 'none'}, request ${terminalLine(requestId ?? 'none')}`,
          ...text.split('\n').map((line) => `    ${terminalLine(line)}`),
        ].join('\n'),
      )
      return {
        text: texts.join('\n\n'),
        json: all,
        talk: [all.length === 0 ? 'There are no tickets.' : `Next: ${invocation.command('request REQUEST')}`],
      }
    }),
}

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
      const id = invocation.argument(0, 'the ID of the ticket', 'tickets list')
      return invocation.withStore(async ({ accountsDeps, tickets }) => {
        const ticket = await markTicket({ ...accountsDeps, store: tickets }, id, to)
        return { text: ticket.id, json: ticket, talk: [`Next: ${invocation.command('tickets list')}`] }
      })
    },
  }
}
