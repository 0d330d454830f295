import { maxListedOperators } from '../../accounts/operators/operators.ts'
import type { Command } from '../command.ts'
import { writeTable, writeTime } from '../terminal/table.ts'

export const operatorsList: Command = {
  name: 'operators list',
  summary: 'List the operators, removed ones last.',
  arguments: [],
  options: [],
  example: 'operators list',
  run: (invocation) =>
    invocation.withStore(async ({ operators }) => {
      const listed = await operators.store.listOperators(maxListedOperators)
      const rows = listed.map(({ id, email, role, state, createdAtMs }) => [
        id,
        email,
        role,
        state,
        writeTime(createdAtMs),
      ])
      const next = rows.length === 0 ? 'operators create EMAIL --role admin' : 'operators sign-in-link EMAIL'
      return {
        text: rows.length === 0 ? '' : writeTable([['ID', 'EMAIL', 'ROLE', 'STATE', 'CREATED'], ...rows]),
        json: listed,
        talk: [...(rows.length === 0 ? ['There are no operators yet.'] : []), `Next: ${invocation.command(next)}`],
      }
    }),
}
