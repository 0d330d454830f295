import { rejectUpgrade } from '../../accounts/billing/upgrade-requests.ts'
import type { Command } from '../command.ts'

export const upgradesReject: Command = {
  name: 'upgrades reject',
  summary: 'Reject an upgrade request. The account stays on its plan.',
  arguments: ['ID'],
  options: [],
  example: 'upgrades reject upg_…',
  run(invocation) {
    const id = invocation.argument(0, 'the id of the request', 'upgrades list')
    return invocation.withStore(async ({ plans }) => {
      const request = await rejectUpgrade(plans, id)
      return {
        text: request.accountId,
        json: { ...request, state: 'rejected' },
        talk: [
          `The request is rejected. Account ${request.accountId} stays on its plan.`,
          `Next: ${invocation.command('upgrades list')}`,
        ],
      }
    })
  },
}
