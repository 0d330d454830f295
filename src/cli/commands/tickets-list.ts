import type { Command } from '../command.ts'
import { terminalLine } from '../../runtime/safe-text.ts'
import { writeTime } from '../terminal/table.ts'

const maxListed = 100

export const ticketsList: Command = {
  name: 'tickets list',
  summary: 'List support tickets with their text, newest first.',
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
