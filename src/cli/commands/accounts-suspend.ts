import { findAccount, resumeAccount, suspendAccount } from '../../accounts/accounts.ts'
import type { Command } from '../command.ts'

export const accountsSuspend = suspension('suspend', true)
export const accountsResume = suspension('resume', false)

function suspension(verb: 'suspend' | 'resume', suspended: boolean): Command {
  return {
    name: `accounts ${verb}`,
    summary: suspended
      ? 'Suspend an account: all its keys stop working.'
      : 'Resume a suspended account: its keys work again.',
    arguments: ['ACCOUNT'],
    options: [],
    example: `accounts ${verb} team-a`,
    run(invocation) {
      const named = invocation.argument(0, 'the account', `accounts ${verb} ACCOUNT`)
      return invocation.withStore(async ({ accountsDeps }) => {
        const account = await findAccount(accountsDeps, named)
        await (suspended ? suspendAccount : resumeAccount)(accountsDeps, account.id)
        return {
          text: account.id,
          json: { ...account, suspended },
          talk: [
            `Account "${account.name}" is ${suspended ? 'suspended' : 'no longer suspended'}. Running servers apply this within a second.`,
            `Next: ${invocation.command(suspended ? `accounts resume ${account.id}` : 'accounts list')}`,
          ],
        }
      })
    },
  }
}
