import { switchManagedAccess } from '../accounts/managed-access.ts'
import type { Command } from './command.ts'

export const managedAccessOn = switching('on', 'Allow managed access: it is on while its three checks hold too.')
export const managedAccessOff = switching('off', 'Turn managed access off for everybody.')

function switching(to: 'on' | 'off', summary: string): Command {
  return {
    name: `managed-access ${to}`,
    summary,
    arguments: [],
    options: [],
    example: `managed-access ${to}`,
    run: (invocation) =>
      invocation.withStore(async ({ managed }) => {
        await switchManagedAccess(managed, to === 'on')
        return {
          text: to,
          json: { switched_on: to === 'on' },
          talk: [
            `The switch is ${to}; running servers apply it within a second.`,
            `Next: ${invocation.command('managed-access status')}`,
          ],
        }
      }),
  }
}
