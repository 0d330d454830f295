import { findOperator, removeOperator } from '../../accounts/operators/operators.ts'
import type { Command } from '../command.ts'

export const operatorsRemove: Command = {
  name: 'operators remove',
  summary: 'Remove an operator and end all their console sessions.',
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
          `${operator.email} is no longer an operator and is signed out everywhere.`,
          `Next: ${invocation.command('operators list')}`,
        ],
      }
    })
  },
}
