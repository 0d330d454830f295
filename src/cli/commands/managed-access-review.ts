import { reviewManagedRequest } from '../../accounts/managed-access/managed-access.ts'
import type { Command } from '../command.ts'

export const managedAccessApprove = review('approve', 'approved', 'Approve an account’s request for managed access.')
export const managedAccessReject = review('reject', 'rejected', 'Reject a request, or end approved access.')

function review(verb: string, decision: 'approved' | 'rejected', summary: string): Command {
  return {
    name: `managed-access ${verb}`,
    summary,
    arguments: ['ID'],
    options: [],
    example: `managed-access ${verb} ID`,
    run(invocation) {
      const id = invocation.argument(0, 'the id of the request', 'managed-access requests')
      return invocation.withStore(async ({ managed }) => {
        const request = await reviewManagedRequest(managed, id, decision)
        return {
          text: request.id,
          json: request,
          talk: [
            `The request of ${request.accountId} is ${decision}. Running servers apply this within a second.`,
            `Next: ${invocation.command('managed-access status')}`,
          ],
        }
      })
    },
  }
}
