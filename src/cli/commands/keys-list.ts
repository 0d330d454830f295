import { effectiveState, maxListedKeys } from '../../accounts/keys.ts'
import { accountOption, type Command } from '../command.ts'
import { writeLimits } from '../key-limits.ts'
import { writeTable, writeTime } from '../terminal/table.ts'

export const keysList: Command = {
  name: 'keys list',
  summary: 'List the keys of an account, newest first.',
  arguments: [],
  options: [accountOption],
  example: 'keys list --json',
  run: (invocation) =>
    invocation.withStore(async ({ accountsDeps, account }) => {
      const { id } = await account()
      const nowMs = accountsDeps.clock.nowMs()
      const keys = (await accountsDeps.store.listKeys(id, maxListedKeys)).map((key) => ({
        ...key,
        state: effectiveState(key, nowMs),
      }))
      const rows = keys.map((key) => [
        key.id,
        key.name,
        key.hint,
        key.state,
        writeTime(key.createdAtMs),
        key.endsAtMs === null ? '' : writeTime(key.endsAtMs),
        writeLimits(key.limits),
      ])
      return {
        text:
          keys.length === 0 ? '' : writeTable([['ID', 'NAME', 'KEY', 'STATE', 'CREATED', 'ENDS', 'LIMITS'], ...rows]),
        json: keys,
        talk:
          keys.length === 0
            ? [`No keys yet. Next: ${invocation.command('keys create')}`]
            : [`Next: ${invocation.command('keys rotate ID')}`],
      }
    }),
}
