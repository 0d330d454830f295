import { findOperator } from '../../accounts/operators/operators.ts'
import type { Command } from '../command.ts'
import { findRunning } from '../process/running-file.ts'

export const operatorsSignInLink: Command = {
  name: 'operators sign-in-link',
  summary: 'Create a link that signs an operator in to the console. It works once, within 15 minutes.',
  arguments: ['OPERATOR'],
  options: [],
  example: 'operators sign-in-link you@example.com',
  run(invocation) {
    const named = invocation.argument(0, 'the id or address of the operator', 'operators list')
    return invocation.withStore(async ({ config, operators, operatorLink }) => {
      const operator = await findOperator(operators, named)
      const running = findRunning(config.dataDir)
      const link = await operatorLink(operator.id, running?.appUrl ?? config.appUrl)
      return {
        text: link.reveal(),
        json: { operator: operator.id, sign_in_url: link.reveal() },
        talk: [
          `Anyone who opens it within 15 minutes is signed in to the console as ${operator.email}. It works once.`,
          ...(running === undefined ? [`The service is not running. Start it: ${invocation.command('start')}`] : []),
        ],
      }
    })
  },
}
