import { limitKey } from '../../accounts/keys.ts'
import { AccountsError } from '../../accounts/accounts-error.ts'
import { quoteForShell } from '../../runtime/quote-for-shell.ts'
import type { Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { limitOptions, readLimits, hasLimits, writeLimits } from '../key-limits.ts'

export const keysLimit: Command = {
  name: 'keys limit',
  summary: 'Restrict a key to certain profiles, request rates, or addresses.',
  arguments: ['ID'],
  options: limitOptions,
  example: 'keys limit ID --profile svc-router/frontier --per-minute 30 --address 203.0.113.0/24',
  run(invocation) {
    const id = invocation.argument(0, 'the id of the key', 'keys list')
    if (!hasLimits(invocation.line)) {
      throw new CommandError(
        exitCodes.usage,
        'there is nothing to change',
        `name a limit: ${invocation.command(`keys limit ${quoteForShell(id.slice(0, 64))} --per-minute 30`)}`,
      )
    }
    return invocation.withStore(async ({ config, accountsDeps }) => {
      const key = await accountsDeps.store.findKey(id)
      if (key === undefined) throw new AccountsError('key_unknown')
      const account = await accountsDeps.store.findAccount(key.accountId)
      const { limits } = await limitKey(accountsDeps, id, readLimits(invocation.line, key.limits, account, config))
      const words = writeLimits(limits)
      return {
        text: key.id,
        json: { id: key.id, name: key.name, account: key.accountId, limits },
        talk: [
          `Key "${key.name}": ${words === '' ? 'no key limits' : words}. Running servers apply this within a second.`,
          `Next: ${invocation.command('keys list')}`,
        ],
      }
    })
  },
}
