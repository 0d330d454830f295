import { createKey } from '../accounts/keys.ts'
import { accountOption, type Command } from './command.ts'

const defaultName = 'key'

export const keysCreate: Command = {
  name: 'keys create',
  summary: 'Make a key and show it this once.',
  arguments: [],
  options: [{ name: 'name', value: 'NAME', summary: `What the key is for. Default "${defaultName}".` }, accountOption],
  example: 'keys create --name laptop',
  run: (invocation) =>
    invocation.withStore(async ({ plane, account }) => {
      const { id, name } = await account()
      const { key, stored } = await createKey(plane, id, invocation.line.option('name') ?? defaultName)
      return {
        text: key.reveal(),
        json: { id: stored.id, name: stored.name, account: id, key: key.reveal() },
        talk: [
          `Key "${stored.name}" (${stored.id}) for account ${name}. It is shown this once: keep it now.`,
          `Next: export SVC_ROUTER_API_KEY=…, or see all keys: ${invocation.command('keys list')}`,
        ],
      }
    }),
}
