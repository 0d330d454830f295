import { createOperator } from '../../accounts/operators/operators.ts'
import type { Command } from '../command.ts'
import { emailAddress } from '../value-shapes.ts'
import { readRole, roleOption } from '../operator-role.ts'

export const operatorsCreate: Command = {
  name: 'operators create',
  summary: 'Add an operator, who can sign in to the console.',
  arguments: ['EMAIL'],
  shapes: { EMAIL: emailAddress },
  options: [roleOption],
  example: 'operators create you@example.com --role admin',
  run(invocation) {
    const email = invocation.argument(0, 'the address', 'operators create you@example.com --role admin')
    const role = readRole(invocation)
    return invocation.withStore(async ({ operators }) => {
      const operator = await createOperator(operators, email, role)
      return {
        text: operator.id,
        json: operator,
        talk: [
          `${operator.email} is an operator with the role ${operator.role}.`,
          `Next: ${invocation.command(`operators sign-in-link ${operator.email}`)}`,
        ],
      }
    }, 'make')
  },
}
