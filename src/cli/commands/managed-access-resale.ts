import { recordResale, revokeResale } from '../../accounts/managed-access/managed-access.ts'
import { suggest } from '../../config/check-shape.ts'
import type { Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'

export const managedAccessResale: Command = {
  name: 'managed-access resale',
  summary: 'Record that a provider allows resale of its service, or revoke that record.',
  arguments: ['PROVIDER'],
  options: [
    { name: 'note', value: 'NOTE', summary: 'Where the agreement is stored: the id of a contract or ticket.' },
    {
      name: 'revoke',
      summary: 'Revoke it. The managed backends of the provider stop serving accounts within a second.',
    },
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
        'give either the id of the agreement or --revoke',
        'add --note NOTE, or --revoke',
      )
    return invocation.withStore(async ({ config, managed }) => {
      const known = config.providers.map(({ name }) => name)
      // A record can be revoked even if the provider was removed from the configuration.
      if (!revokes && !known.includes(provider))
        throw new CommandError(
          exitCodes.failure,
          'the configuration has no provider with that name',
          known.length === 0
            ? 'add it to "providers" in the configuration, with a managed backend'
            : suggest(provider, known),
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
