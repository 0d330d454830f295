import { createKey } from '../../accounts/keys.ts'
import { noLimits } from '../../domain/key-limits.ts'
import { accountOption, type Command } from '../command.ts'
import { limitOptions, readLimits } from '../key-limits.ts'

const defaultName = 'key'

export const keysCreate: Command = {
  name: 'keys create',
  summary: 'Create a key and print it. It is shown only once.',
  arguments: [],
  options: [
    { name: 'name', value: 'NAME', summary: `What the key is for. Default "${defaultName}".` },
    ...limitOptions,
    accountOption,
  ],
  example: 'keys create --name laptop',
  run: (invocation) =>
    invocation.withStore(async ({ config, accountsDeps, account }) => {
      const owner = await account()
      const { id, name } = owner
      const limits = readLimits(invocation.line, noLimits, owner, config)
      const { key, stored } = await createKey(accountsDeps, id, invocation.line.option('name') ?? defaultName, limits)
      return {
        text: key.reveal(),
        json: { id: stored.id, name: stored.name, account: id, key: key.reveal(), limits: stored.limits },
        talk: [
          `Created key "${stored.name}" (${stored.id}) for account ${name}. It is shown only once, so save it now.`,
          `Next: export SVC_ROUTER_API_KEY=…, or list all keys: ${invocation.command('keys list')}`,
        ],
      }
    }),
}
