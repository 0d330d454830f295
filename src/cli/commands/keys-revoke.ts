import { revokeKey } from '../../accounts/keys.ts'
import { quoteForShell } from '../../runtime/quote-for-shell.ts'
import type { Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'

export const keysRevoke: Command = {
  name: 'keys revoke',
  summary: 'Revoke a key permanently.',
  arguments: ['ID'],
  options: [{ name: 'yes', summary: 'Confirm: this cannot be undone.' }],
  example: 'keys revoke ID --yes',
  run(invocation) {
    const id = invocation.argument(0, 'the id of the key', 'keys list')
    if (!invocation.line.flag('yes')) {
      throw new CommandError(
        exitCodes.usage,
        'revoking a key cannot be undone',
        `to confirm: ${invocation.command(`keys revoke ${quoteForShell(id.slice(0, 64))} --yes`)}`,
      )
    }
    return invocation.withStore(async ({ accountsDeps }) => {
      const key = await revokeKey(accountsDeps, id)
      return {
        text: key.id,
        json: { id: key.id, name: key.name, account: key.accountId, state: 'revoked' },
        talk: [
          `Key "${key.name}" is revoked. Running servers reject it within a second.`,
          `Next: ${invocation.command('keys create')}`,
        ],
      }
    })
  },
}
