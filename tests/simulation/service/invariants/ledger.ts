import { periodAt } from '../../../../src/domain/account-meter.ts'
import { type Evidence, hasContent, idOf, type Invariant, isFusion, plansOf } from '../evidence.ts'

const minuteMs = 60_000

/** What the ledger promises: nobody is charged or admitted too often, and everything delivered is charged. */
export const ledgerInvariants: readonly Invariant[] = [
  {
    id: 'I1',
    sentence: 'No account is charged more units in a month than its plan allows.',
    *check(evidence) {
      for (const [account, { id }] of evidence.world.template.accounts.entries()) {
        const most = Math.max(...plansOf(evidence, account).map(({ requestsPerMonth }) => requestsPerMonth))
        for (const { account_id, period_id, used } of evidence.usage)
          if (account_id === id && used > most)
            yield `account ${account}: ${used} units in ${period_id}, ${most} allowed`
      }
    },
  },
  {
    id: 'I2',
    sentence: 'Whoever received a byte of content was charged for the whole request, whatever happened afterwards.',
    *check({ exchanges, rows }) {
      for (const exchange of exchanges) {
        if (!hasContent(exchange)) continue
        const row = rows.get(idOf(exchange) ?? '')
        if (row === undefined) yield `request ${exchange.number}: content, and no record`
        else if (row.charged !== row.units)
          yield `request ${exchange.number}: content, and ${row.charged} of ${row.units} units`
      }
    },
  },
  {
    id: 'I3',
    sentence: "The units of an account's month are the sum of what its requests were charged.",
    *check({ usage, rows }) {
      const sums = new Map<string, number>()
      const nameOf = (account: string, period: string): string => `${account} in ${period}`
      for (const { account_id, period_id, charged } of rows.values()) {
        const name = nameOf(account_id, period_id)
        sums.set(name, (sums.get(name) ?? 0) + charged)
      }
      for (const { account_id, period_id, used } of usage) {
        const name = nameOf(account_id, period_id)
        if (used !== (sums.get(name) ?? 0)) yield `${name}: ${used} counted, ${sums.get(name) ?? 0} charged`
        sums.delete(name)
      }
      for (const [name, charged] of sums) if (charged !== 0) yield `${name}: 0 counted, ${charged} charged`
    },
  },
  {
    id: 'I4',
    sentence: 'Every request ends in one final state, once, and another recovery changes none of them.',
    *check({ rows, recovered, world }) {
      for (const { id, state, charged, units } of rows.values()) {
        if (state !== 'done' && state !== 'lost') yield `${id} is ${state}`
        if (charged !== 0 && charged !== units) yield `${id} is charged ${charged} of ${units}`
      }
      for (const id of recovered) yield `${id} is decided a second time`
      const ended = new Set<string>()
      for (const { event } of world.events) {
        if (event.event !== 'request') continue
        if (ended.has(event.requestId)) yield `${event.requestId} ended twice`
        ended.add(event.requestId)
      }
    },
  },
  {
    id: 'I5',
    sentence: 'At rest, no unit is reserved: the ledger counts in memory what is on disk.',
    *check({ atRest, usage }) {
      if (atRest.inFlight > 0) yield `${atRest.inFlight} requests are still in flight`
      for (const [account, { used, resetAt }] of atRest.used) {
        const period = periodAt(resetAt * 1_000 - 1).id
        const onDisk =
          usage.find(({ account_id, period_id }) => account_id === account && period_id === period)?.used ?? 0
        if (used !== onDisk) yield `${account}: ${used} in memory, ${onDisk} on disk for ${period}`
      }
    },
  },
  {
    id: 'I6',
    sentence: 'Whoever stayed and received an error or nothing was not charged.',
    *check(evidence) {
      const { exchanges, rows, world } = evidence
      for (const exchange of exchanges) {
        const { status, body } = exchange.response
        const row = rows.get(idOf(exchange) ?? '')
        // An answer that was interrupted is charged, and its retries say so (contract 39.8).
        if (row === undefined || exchange.end === 'left' || exchange.plan.isNamed) continue
        const isRefused = status !== 200 || (!isFusion(exchange) && exchange.end === 'whole' && !hasContent(exchange))
        // Marks that the machine lost count as deliveries, also of what was not canceled on disk yet (contract 6.13).
        if (world.crashes.some(({ what, atMs }) => what === 'machine' && atMs >= exchange.startedMs)) continue
        if (isRefused && row.charged > 0)
          yield `request ${exchange.number}: ${status} ${body.slice(0, 200)}, and charged ${row.charged}`
      }
      yield* chargedForNothing(evidence)
    },
  },
  {
    id: 'I7',
    sentence: 'In any 60 s, no account is admitted more often than its plan allows, also across a crash.',
    *check(evidence) {
      const { world, rows, admitted } = evidence
      // A restart knows the last minute by the wall clock.
      if (world.steps.length > 0 && world.crashes.length + world.restarts.length > 0) return
      for (const [account, { id }] of world.template.accounts.entries()) {
        const most = Math.max(...plansOf(evidence, account).map(({ requestsPerMinute }) => requestsPerMinute))
        const times = [...rows.values()]
          .filter(({ account_id }) => account_id === id)
          .map((row) => admitted.get(row.id)!.atMs)
          .toSorted((a, b) => a - b)
        for (const [index, atMs] of times.entries()) {
          const before = times[index - most]
          if (before !== undefined && atMs - before < minuteMs)
            yield `account ${account}: ${most + 1} requests in ${atMs - before} ms, ${most} allowed`
        }
      }
    },
  },
  {
    id: 'I7b',
    sentence: 'Nobody is refused who has requests left: a 429 and a 402 say the truth.',
    *check(evidence) {
      const { world, exchanges } = evidence
      if (world.steps.length > 0) return
      for (const { number, plan, response, startedMs, endedMs } of exchanges) {
        if (response.status === 402 && Number(response.headers.get('x-quota-remaining')) > 0)
          yield `request ${number}: 402 with ${response.headers.get('x-quota-remaining')} units left`
        if (response.status !== 429 || !response.body.includes('"rate_limit_exceeded"')) continue
        const least = Math.min(...plansOf(evidence, plan.account).map(({ requestsPerMinute }) => requestsPerMinute))
        const { id } = world.template.accounts[plan.account]!
        const recent = world.admitted.filter(
          ({ opening, atMs }) => opening.accountId === id && atMs >= startedMs - minuteMs && atMs <= endedMs!,
        )
        if (recent.length < least) yield `request ${number}: 429 after ${recent.length} requests, ${least} allowed`
      }
    },
  },
  {
    id: 'I9',
    sentence: 'Every request belongs to the month in which it was admitted.',
    *check({ world, rows, admitted }) {
      if (world.steps.length > 0) return
      for (const { id, period_id } of rows.values()) {
        const { atMs } = admitted.get(id)!
        const expected = periodAt(world.startMs + atMs).id
        if (period_id !== expected) yield `${id} is in ${period_id}, and was admitted in ${expected}`
      }
    },
  },
]

/** Requests of clients that left, or whose process crashed, without a call or a byte. */
function* chargedForNothing(evidence: Evidence): Iterable<string> {
  const { exchanges, rows, admitted, calls, world } = evidence
  const shown = new Set(exchanges.map((exchange) => idOf(exchange)))
  for (const row of rows.values()) {
    if (row.charged === 0 || shown.has(row.id)) continue
    const at = admitted.get(row.id)
    if (at === undefined) yield `${row.id} was never admitted`
    // Its client left or the process ended. If nobody called a provider since, there was nothing to charge, unless the
    // service was connecting to one.
    else if (
      row.attempts === null &&
      !calls.some(({ atMs }) => atMs >= at.atMs) &&
      world.crashes.every(({ what }) => what === 'process')
    )
      yield `${row.id} is charged, and no provider was called`
  }
}
