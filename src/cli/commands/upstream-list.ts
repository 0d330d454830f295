import { accountOption, type Command } from '../command.ts'
import { writeTable, writeTime } from '../terminal/table.ts'

export const upstreamList: Command = {
  name: 'upstream list',
  summary: 'List the connected providers in the order in which they are tried.',
  arguments: [],
  options: [accountOption],
  example: 'upstream list',
  run: (invocation) =>
    invocation.withStore(async ({ accountsDeps, account }) => {
      const { id } = await account()
      const upstreams = (await accountsDeps.store.listUpstreams(id)).map(({ sealedCredential, ...shown }) => ({
        ...shown,
        hasCredential: sealedCredential !== null,
      }))
      const rows = upstreams.map((upstream) => [
        upstream.id,
        upstream.provider,
        upstream.model,
        upstream.hasCredential ? `…${upstream.credentialHint ?? ''}` : 'none',
        upstream.baseUrl ?? 'preset',
        writeTime(upstream.createdAtMs),
      ])
      return {
        text:
          upstreams.length === 0
            ? ''
            : writeTable([['ID', 'PROVIDER', 'MODEL', 'CREDENTIAL', 'URL', 'ADDED'], ...rows]),
        json: upstreams,
        talk: [
          `Next: ${invocation.command(upstreams.length === 0 ? 'upstream add PROVIDER --model MODEL' : 'upstream test')}`,
        ],
      }
    }),
}
