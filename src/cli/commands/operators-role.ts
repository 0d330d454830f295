import { changeOperatorRole, findOperator } from '../../accounts/operators/operators.ts'
import type { Command } from '../command.ts'
import { readRole, roleOption } from '../operator-role.ts'

export const operatorsRole: Command = {
  name: 'operators role',
  summary: "Change an operator's role, effective immediately.",
  arguments: ['OPERATOR'],
  options: [roleOption],
  example: 'operators role you@example.com --role support',
  run(invocation) {
    const named = invocation.argument(0, 'the id or address of the operator', 'operators list')
    const role = readRole(invocation)
    return invocation.withStore(async ({ operators }) => {
      const operator = await findOperator(operators, named)
      await changeOperatorRole(operators, operator.id, role)
      return {
        text: operator.id,
        json: { ...operator, role },
        talk: [`${operator.email} now has the role ${role}.`, `Next: ${invocation.command('operators list')}`],
      }
    })
  },
}
