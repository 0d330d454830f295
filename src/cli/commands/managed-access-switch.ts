import { switchManagedAccess } from '../../accounts/managed-access/managed-access.ts'
import type { Command } from '../command.ts'

export const managedAccessOn = switching('on', 'Turn managed access on. It is active only while its three checks pass.')
export const managedAccessOff = switching('off', 'Turn managed access off for all accounts.')

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
            `Managed access is switched ${to}. Running servers apply this within a second.`,
            `Next: ${invocation.command('managed-access status')}`,
          ],
        }
      }),
  }
}
