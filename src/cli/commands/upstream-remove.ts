import { removeUpstream } from '../../accounts/upstreams.ts'
import { quoteForShell } from '../../runtime/quote-for-shell.ts'
import { accountOption, type Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'

export const upstreamRemove: Command = {
  name: 'upstream remove',
  summary: 'Disconnect a provider and delete its credential.',
  arguments: ['ID'],
  options: [{ name: 'yes', summary: 'Confirm: the credential cannot be restored.' }, accountOption],
  example: 'upstream remove ID --yes',
  run(invocation) {
    const id = invocation.argument(0, 'the id of the upstream', 'upstream list')
    if (!invocation.line.flag('yes')) {
      throw new CommandError(
        exitCodes.usage,
        'removing an upstream deletes its credential',
        `to confirm: ${invocation.command(`upstream remove ${quoteForShell(id.slice(0, 64))} --yes`)}`,
      )
    }
    return invocation.withStore(async ({ accountsDeps, account }) => {
      await removeUpstream(accountsDeps, (await account()).id, id)
      return { text: id, json: { id, removed: true }, talk: [`Next: ${invocation.command('upstream list')}`] }
    })
  },
}
