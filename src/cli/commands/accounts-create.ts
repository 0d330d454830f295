import { createAccount } from '../../accounts/accounts.ts'
import { quoteForShell } from '../../runtime/quote-for-shell.ts'
import type { Command } from '../command.ts'

export const accountsCreate: Command = {
  name: 'accounts create',
  summary: 'Create an account.',
  arguments: ['NAME'],
  options: [{ name: 'plan', value: 'PLAN', summary: 'The plan. Default: default_plan in the configuration.' }],
  example: 'accounts create team-a --plan pro',
  run(invocation) {
    const name = invocation.argument(0, 'the name of the account', 'accounts create NAME')
    return invocation.withStore(async ({ config, accountsDeps }) => {
      const account = await createAccount(
        accountsDeps,
        name,
        invocation.line.option('plan') ?? config.defaultPlan,
        config.plans,
      )
      return {
        text: account.id,
        json: account,
        talk: [
          `Created account "${account.name}" on plan ${account.planId}.`,
          `Next: ${invocation.command(`keys create --account ${quoteForShell(account.name)}`)}`,
        ],
      }
    }, 'make')
  },
}
