import { approveUpgrade } from '../accounts/billing/upgrade-requests.ts'
import type { Command } from './command.ts'

export const upgradesApprove: Command = {
  name: 'upgrades approve',
  summary: 'Approve a request: the account is put on the plan.',
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
          `Account ${request.accountId} is on plan ${request.planId}; running servers apply it within a second.`,
          `Next: ${invocation.command('upgrades list')}`,
        ],
      }
    })
  },
}
