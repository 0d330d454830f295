import { approveUpgrade } from '../../accounts/billing/upgrade-requests.ts'
import type { Command } from '../command.ts'

export const upgradesApprove: Command = {
  name: 'upgrades approve',
  summary: 'Approve an upgrade request and change the plan of the account.',
  arguments: ['ID'],
  options: [],
  example: 'upgrades approve upg_…',
  run(invocation) {
    const id = invocation.argument(0, 'the id of the request', 'upgrades list')
    return invocation.withStore(async ({ plans }) => {
      const request = await approveUpgrade(plans, id)
      return {
        text: request.accountId,
        json: { ...request, state: 'approved' },
        talk: [
          `Account ${request.accountId} is now on plan ${request.planId}. Running servers apply this within a second.`,
          `Next: ${invocation.command('upgrades list')}`,
        ],
      }
    })
  },
}
