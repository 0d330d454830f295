import {
  createAccount,
  maxListedAccounts,
  changePlan,
  findAccount,
  resumeAccount,
  suspendAccount,
} from '../../accounts/accounts.ts'
import { suggest } from '../../config/check-shape.ts'
import { quoteForShell } from '../../runtime/quote-for-shell.ts'
import type { Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { newName } from '../value-shapes.ts'

export const accountsCreate: Command = {
  name: 'accounts create',
  summary: 'Create an account.',
  arguments: ['NAME'],
  shapes: { NAME: newName },
  options: [{ name: 'plan', value: 'PLAN', summary: 'The plan. Default: default_plan in the configuration.' }],
  example: 'accounts create team-a --plan pro',
  run(invocation) {
    const name = invocation.argument(0, 'the name of the account', 'accounts create NAME')
    return invocation.withStore(
      async ({ config, accountsDeps }) => {
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
      },
      { none: 'make' },
    )
  },
}

export const accountsList: Command = {
  name: 'accounts list',
  summary: 'List the accounts, oldest first.',
  arguments: [],
  options: [],
  example: 'accounts list',
  run: (invocation) =>
    invocation.withStore(async ({ accountsDeps }) => {
      const accounts = await accountsDeps.store.listAccounts(maxListedAccounts)
      const rows = accounts.map((account) => [
        account.id,
        account.name,
        account.planId,
        account.suspended ? 'suspended' : 'open',
        writeTime(account.createdAtMs),
      ])
      return {
        text: accounts.length === 0 ? '' : writeTable([['ID', 'NAME', 'PLAN', 'STATE', 'CREATED'], ...rows]),
        json: accounts,
        talk: [
          `Next: ${invocation.command(accounts.length === 0 ? 'accounts create NAME' : 'keys list --account NAME')}`,
        ],
      }
    }),
}

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
