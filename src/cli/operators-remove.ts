import { findOperator, removeOperator } from '../accounts/operators.ts'
import type { Command } from './command.ts'

export const operatorsRemove: Command = {
  name: 'operators remove',
  summary: 'End an operator, and every session of the console that it has.',
  arguments: ['OPERATOR'],
  options: [],
  example: 'operators remove you@example.com',
  run(invocation) {
    const named = invocation.argument(0, 'the id or address of the operator', 'operators list')
    return invocation.withStore(async ({ operators }) => {
      const operator = await findOperator(operators, named)
      await removeOperator(operators, operator.id)
      return {
        text: operator.id,
        json: { ...operator, state: 'removed' },
        talk: [
          `${operator.email} is no operator any more, and signed out everywhere.`,
          `Next: ${invocation.command('operators list')}`,
        ],
      }
    })
  },
}
