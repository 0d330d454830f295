import { ChainFollower, chainStart } from '../../../../src/domain/audit-chain.ts'
import { keyPrefix } from '../../../../src/domain/keys.ts'
import { promptSecret } from '../client.ts'
import type { Invariant } from '../evidence.ts'
import { providerSecret } from '../provider-answer.ts'
import { secretStart, type Template, upstreamCredential } from '../template.ts'
import type { Change, World } from '../world.ts'

/** How long a revocation may take while the store answers, and if it does not (contract 3.11), with some network. */
const revokedWithinMs = 700
const revokedAtLeastWithinMs = 6_000
/** How late a call may be sent once more that a reused connection lost (contract 7.10). */
const replayedWithinMs = 1_000
/** A call is sent this soon after its key was checked, while its process is not stopped: it may need a connection first. */
const sentWithinMs = 10

/** Who may do what, and what is written about it. */
export const accessInvariants: readonly Invariant[] = [
  {
    id: 'I11',
    sentence:
      'Soon after a revocation or suspension was confirmed, and ever after, its key is admitted nowhere and causes no call.',
    *check({ world, admitted, rows, calls }) {
      const keyOf = new Map(world.exchanges.map(({ number, plan }) => [number, plan]))
      for (const change of world.changes) {
        const { action, ackedMs } = change
        if (ackedMs === undefined || (action.do !== 'revoke' && action.do !== 'suspend') || change.isUndo) continue
        const account = world.template.accounts[action.account]!
        const fromMs = ackedMs + boundOf(world, ackedMs)
        const untilMs = action.do === 'revoke' ? Number.POSITIVE_INFINITY : undoneMs(world, change)
        for (const { opening, atMs } of admitted.values()) {
          const isOf =
            action.do === 'revoke' ? opening.keyId === account.keys[action.key]!.id : opening.accountId === account.id
          if (isOf && atMs > fromMs && atMs < untilMs)
            yield `${opening.id} was admitted ${atMs - ackedMs} ms after ${action.do}, ${rows.has(opening.id) ? 'and recorded' : 'and lost'}`
        }
        for (const { number, request, atMs } of calls) {
          const plan = keyOf.get(request)
          const isOf =
            plan?.account === action.account && (action.do === 'suspend' || plan.key === account.keys[action.key]!.key)
          if (isOf && atMs < untilMs && isLateCall(world, fromMs, atMs))
            yield `call ${number} began ${atMs - ackedMs} ms after ${action.do}`
        }
      }
    },
  },
  {
    id: 'I12',
    sentence: 'A 401 goes only to a key that was revoked, suspended, or never existed, whatever else fails.',
    *check({ world, exchanges }) {
      for (const { number, plan, response, endedMs } of exchanges) {
        if (response.status !== 401) continue
        const { id, keys } = world.template.accounts[plan.account]!
        const key = keys.findIndex((each) => each.key === plan.key)
        const isRevoked = world.changes.some(
          ({ action, startedMs }) =>
            startedMs <= endedMs! &&
            ((action.do === 'revoke' && action.account === plan.account && action.key === key) ||
              (action.do === 'suspend' && action.account === plan.account)),
        )
        if (key >= 0 && !isRevoked) yield `request ${number} of ${id}: ${response.body.slice(0, 200)}`
      }
    },
  },
  {
    id: 'I16',
    sentence: 'No prompt, key, credential, or text of a provider is in a log line, the database, or an error.',
    *check({ world, exchanges }) {
      const keys = world.template.accounts.flatMap((account) => account.keys.map(({ key }) => key))
      const log = JSON.stringify(world.events)
      for (const secret of secretsIn(log, keys)) yield `the log contains ${secret}`
      for (const row of world.disk.rowsWith(secretStart, keyPrefix))
        for (const secret of secretsIn(row, keys)) yield `the database contains ${secret}`
      for (const { number, response } of exchanges)
        if (secretsIn(response.body, keys).some((secret) => secret !== promptSecret))
          yield `request ${number}: ${response.body.slice(0, 300)}`
    },
  },
  {
    id: 'I17',
    sentence: 'Every change has exactly one audit entry, and the chain of entries verifies.',
    *check({ world }) {
      const links = world.disk.database
        .prepare('select entry, hash from audit_log order by sequence')
        .all() as unknown as Template['auditLog']
      const { auditLog } = world.template
      for (const [index, { hash, entry }] of auditLog.entries())
        if (links[index]?.hash !== hash || links[index].entry !== entry) yield `entry ${index + 1} was changed`
      // The first ones are verified by being the same.
      const follower = new ChainFollower(
        { sequence: auditLog.length, hash: auditLog.at(-1)?.hash ?? chainStart.hash },
        [],
      )
      for (const link of links.slice(auditLog.length)) {
        const broken = follower.follow(link)
        if (broken !== undefined) yield `entry ${broken.sequence}: ${broken.why}`
      }
      const entries = links.length - auditLog.length
      const confirmed = world.changes.filter(({ ackedMs, isBatch }) => ackedMs !== undefined && !isBatch).length
      // A change that failed may have been made all the same; the last ones are several.
      if (entries < confirmed) yield `${confirmed} changes, and ${entries} entries`
    },
  },
]

/** The secrets that a text contains. Only places that begin like one are compared. */
function secretsIn(text: string, keys: readonly string[]): readonly string[] {
  const found: string[] = []
  for (const [start, secrets] of [
    [secretStart, [promptSecret, providerSecret, upstreamCredential]],
    [keyPrefix, keys],
  ] as const)
    for (let at = text.indexOf(start); at >= 0; at = text.indexOf(start, at + 1))
      for (const secret of secrets) if (text.startsWith(secret, at)) found.push(secret)
  return found
}

/** After this long, no process admits the key anymore. */
function boundOf({ outages, pauses, crashes, restarts }: World, ackedMs: number): number {
  const untilMs = ackedMs + revokedAtLeastWithinMs
  const isDisturbed =
    outages.some((outage) => outage.untilMs >= ackedMs - 1_000 && outage.fromMs <= untilMs) ||
    [...pauses, ...crashes, ...restarts].some(({ atMs }) => atMs >= ackedMs - 10_000 && atMs <= untilMs)
  return isDisturbed ? revokedAtLeastWithinMs : revokedWithinMs
}

/** Whether a call cannot have been allowed by `fromMs`. If its process was stopped in between, it is sent afterwards. */
function isLateCall({ pauses }: World, fromMs: number, atMs: number): boolean {
  if (atMs <= fromMs + replayedWithinMs) return false
  return !pauses.some((pause) => {
    const resumedMs = pause.atMs + pause.forMs
    return pause.atMs <= fromMs && resumedMs <= atMs && atMs <= resumedMs + sentWithinMs
  })
}

/** When the end of a suspension began. */
function undoneMs({ changes }: World, { action, startedMs }: Change): number {
  const undone = changes.find((each) => each.isUndo && each.action === action && each.startedMs > startedMs)
  const last = changes.find(({ isBatch }) => isBatch)
  return Math.min(undone?.startedMs ?? Number.POSITIVE_INFINITY, last?.startedMs ?? Number.POSITIVE_INFINITY)
}
