import { changePlan, findAccount } from '../../accounts/accounts.ts'
import { suggest } from '../../config/check-shape.ts'
import type { Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'

export const accountsPlan: Command = {
  name: 'accounts plan',
  summary: 'Change the plan of an account.',
  arguments: ['ACCOUNT', 'PLAN'],
  options: [],
  example: 'accounts plan local pro',
  run(invocation) {
    const named = invocation.argument(0, 'the account', 'accounts plan ACCOUNT PLAN')
    const planId = invocation.argument(1, 'the plan', 'accounts plan ACCOUNT PLAN')
    return invocation.withStore(async ({ config, accountsDeps }) => {
      const ids = config.plans.map((plan) => plan.id)
      if (!ids.includes(planId))
        throw new CommandError(
          exitCodes.failure,
          'there is no plan with that name',
          `${suggest(planId, ids)} See the plans: ${invocation.command('check')}`,
        )
      const account = await findAccount(accountsDeps, named)
      await changePlan(accountsDeps, account.id, planId, config.plans)
      return {
        text: account.id,
        json: { ...account, planId },
        talk: [
          `Account "${account.name}" is now on plan ${planId}. Running servers apply this within a second.`,
          `Next: ${invocation.command('accounts list')}`,
        ],
      }
    })
  },
}
