import { maxListedRequests } from '../../accounts/billing/upgrade-requests.ts'
import type { Command } from '../command.ts'
import { writeTable, writeTime } from '../terminal/table.ts'

export const upgradesList: Command = {
  name: 'upgrades list',
  summary: 'List upgrade requests, newest first.',
  arguments: [],
  options: [{ name: 'all', summary: 'Include decided and withdrawn requests.' }],
  example: 'upgrades list',
  run: (invocation) =>
    invocation.withStore(async ({ plans }) => {
      const isAll = invocation.line.flag('all')
      const requests = await plans.store.listUpgradeRequests({ limit: maxListedRequests, onlyOpen: !isAll })
      const rows = requests.map(({ id, accountId, planId, state, createdAtMs, decidedAtMs }) => [
        id,
        accountId,
        planId,
        state,
        writeTime(createdAtMs),
        decidedAtMs === null ? '' : writeTime(decidedAtMs),
      ])
      const next = requests.some(({ state }) => state === 'requested') ? 'upgrades approve ID' : 'upgrades list --all'
      return {
        text:
          rows.length === 0 ? '' : writeTable([['ID', 'ACCOUNT', 'PLAN', 'STATE', 'REQUESTED', 'DECIDED'], ...rows]),
        json: requests,
        talk: [...(rows.length === 0 ? ['There are no requests.'] : []), `Next: ${invocation.command(next)}`],
      }
    }),
}
