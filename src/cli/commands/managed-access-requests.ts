import { maxListedRequests } from '../../accounts/managed-access/managed-access.ts'
import type { ManagedRequestState } from '../../domain/managed-access.ts'
import type { Command } from '../command.ts'
import { oneOf } from '../value-shapes.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTable, writeTime } from '../terminal/table.ts'

const states = ['requested', 'approved', 'rejected', 'withdrawn'] as const satisfies readonly ManagedRequestState[]

export const managedAccessRequests: Command = {
  name: 'managed-access requests',
  summary: 'List accounts’ requests for managed access, newest first.',
  arguments: [],
  options: [
    {
      name: 'state',
      value: 'STATE',
      shape: oneOf(states),
      summary: `Only requests in this state: ${states.join(', ')}. Default: all.`,
    },
  ],
  example: 'managed-access requests --state requested',
  run(invocation) {
    const named = invocation.line.option('state')
    const state = states.find((known) => known === named)
    if (named !== undefined && state === undefined)
      throw new CommandError(exitCodes.usage, `--state must be one of ${states.join(', ')}`, '--state requested')
    return invocation.withStore(async ({ managed }) => {
      const selection = { limit: maxListedRequests, ...(state !== undefined && { state }) }
      const requests = await managed.store.listManagedRequests(selection)
      const rows = requests.map(({ id, accountId, createdAtMs, state: stands }) => [
        id,
        accountId,
        writeTime(createdAtMs),
        stands,
      ])
      return {
        text: rows.length === 0 ? '' : writeTable([['ID', 'ACCOUNT', 'MADE', 'STATE'], ...rows]),
        json: requests,
        talk: [
          rows.length === 0
            ? 'No requests. Accounts make them on their managed access page.'
            : `Next: ${invocation.command('managed-access approve ID')}`,
        ],
      }
    })
  },
}
