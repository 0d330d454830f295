import { maxListedAccounts } from '../../accounts/accounts.ts'
import type { Command } from '../command.ts'
import { writeTable, writeTime } from '../terminal/table.ts'

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
