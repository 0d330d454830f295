import { recordResale, revokeResale } from '../accounts/managed-access.ts'
import { suggest } from '../config/check-shape.ts'
import type { Command } from './command.ts'
import { CommandError, exitCodes } from './failures.ts'

export const managedAccessResale: Command = {
  name: 'managed-access resale',
  summary: 'Record that a provider allows its service to be resold, or take that back.',
  arguments: ['PROVIDER'],
  options: [
    { name: 'note', value: 'NOTE', summary: 'Where you keep the agreement: the id of a contract or ticket.' },
    { name: 'revoke', summary: 'Take it back: its managed backends serve nobody a second later.' },
  ],
  example: 'managed-access resale openai --note CONTRACT-17',
  run(invocation) {
    const { line } = invocation
    const provider = invocation.argument(0, 'the provider', 'managed-access resale PROVIDER --note NOTE')
    const note = line.option('note')
    const revokes = line.flag('revoke')
    if ((note === undefined) !== revokes)
      throw new CommandError(
        exitCodes.usage,
        'say either where the agreement is, or that it is revoked',
        'add --note NOTE, or --revoke',
      )
    return invocation.withStore(async ({ config, managed }) => {
      const known = config.providers.map(({ name }) => name)
      // What is recorded can be taken back also where the configuration has dropped the provider.
      if (!revokes && !known.includes(provider))
        throw new CommandError(
          exitCodes.failure,
          'the configuration has no provider of that name',
          known.length === 0 ? 'add it to "providers" there, with a backend that is managed' : suggest(provider, known),
        )
      if (note === undefined) await revokeResale(managed, provider)
      else await recordResale(managed, provider, note)
      return {
        text: provider,
        json: { provider, note, recorded: !revokes },
        talk: [
          `Resale controls of ${provider} are ${revokes ? 'revoked' : 'recorded'}.`,
          `Next: ${invocation.command('managed-access status')}`,
        ],
      }
    })
  },
}
