import { maxListedRequests, approveUpgrade, rejectUpgrade } from '../../accounts/billing/upgrade-requests.ts'
import type { Command } from '../command.ts'
import { writeTable, writeTime } from '../terminal/table.ts'

export const upgradesList: Command = {
  name: 'upgrades list',
  summary: `List accounts' open requests to change plans, newest first, at most ${maxListedRequests}.`,
  arguments: [],
  options: [{ name: 'all', summary: 'Also list decided and withdrawn requests.' }],
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

export const upgradesApprove: Command = {
  name: 'upgrades approve',
  summary: "Approve an account's request to change plans, and change its plan.",
  arguments: ['ID'],
  options: [],
  example: 'upgrades approve upg_…',
  run(invocation) {
    const id = invocation.argument(0, 'the ID of the request', 'upgrades list')
    return invocation.withStore(async ({ plans }) => {
      const request = await approveUpgrade(plans, id)
      return {
        text: request.accountId,
        json: { ...request, state: 'approved' },
        talk: [
          `Account ${request.accountId} is now on plan ${request.planId}. Running servers apply this within a second.`,
          `Next: ${invocation.command('upgrades list')}`,
        ],
      }
    })
  },
}

export const upgradesReject: Command = {
  name: 'upgrades reject',
  summary: "Reject an account's request to change plans. The account stays on its plan.",
  arguments: ['ID'],
  options: [],
  example: 'upgrades reject upg_…',
  run(invocation) {
    const id = invocation.argument(0, 'the ID of the request', 'upgrades list')
    return invocation.withStore(async ({ plans }) => {
      const request = await rejectUpgrade(plans, id)
      return {
        text: request.accountId,
        json: { ...request, state: 'rejected' },
        talk: [
          `The request is rejected. Account ${request.accountId} stays on its plan.`,
          `Next: ${invocation.command('upgrades list')}`,
        ],
      }
    })
  },
}
