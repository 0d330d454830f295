import type { Plan } from '../../../src/domain/plans.ts'
import { fusionId } from '../../../src/domain/profiles.ts'
import { recoverRequests } from '../../../src/storage/ledger/recovery.ts'
import type { RequestRow } from '../../../src/storage/schema/schema.ts'
import { type Exchange, firstOf } from './client.ts'
import type { ProviderCall } from './provider.ts'
import type { Admitted, World } from './world.ts'

/** One invariant: a sentence that is true of every schedule, and how to find out where it is not. */
export interface Invariant {
  /** As in the project's list of invariants, or `S` with a number for this simulation's own. */
  readonly id: string
  readonly sentence: string
  /** Describes each violation. */
  readonly check: (evidence: Evidence) => Iterable<string>
}

interface UsageRow {
  readonly account_id: string
  readonly period_id: string
  readonly used: number
}

/** What was measured while the last process was at rest. */
export interface AtRest {
  readonly openRequests: number
  readonly inFlight: number
  /** Calls that wait for a connection. */
  readonly waitingForConnection: number
  /** Places of connections that are taken without a connection. */
  readonly lostPlaces: number
  readonly waitingCalls: number
  readonly heldShares: readonly string[]
  /** Units that the ledger counts in memory, by account. */
  readonly used: ReadonlyMap<string, { readonly used: number; readonly resetAt: number }>
}

/** Everything that is known of one schedule after its end. */
export interface Evidence {
  readonly world: World
  readonly exchanges: readonly Exchange[]
  readonly calls: readonly ProviderCall[]
  readonly rows: ReadonlyMap<string, RequestRow>
  readonly usage: readonly UsageRow[]
  /** The IDs of stored responses. */
  readonly responses: ReadonlySet<unknown>
  readonly admitted: ReadonlyMap<string, Admitted>
  readonly atRest: AtRest
  /** Rows whose state or charge another recovery changes. */
  readonly recovered: readonly string[]
  /** The last exchange of the account that asked after all faults had ended; undefined if none could. */
  readonly finalExchange: Exchange | undefined
}

/** Reads the database of a world whose last process has ended in order. */
export function evidenceOf(world: World, atRest: AtRest, finalExchange: Exchange | undefined): Evidence {
  const { database } = world.disk
  const before = database
    .prepare('select * from requests order by admitted_at_ms')
    .all() as unknown as readonly RequestRow[]
  recoverRequests(database, world.disk.takeMarks())
  const decided = database.prepare('select id, state, charged from requests').all() as unknown as readonly RequestRow[]
  const after = new Map(decided.map((row) => [row.id, row]))
  return {
    world,
    exchanges: world.exchanges,
    calls: [...world.providers.values()].flatMap(({ calls }) => calls),
    rows: new Map(before.map((row) => [row.id, row])),
    usage: database.prepare('select * from usage').all() as unknown as UsageRow[],
    responses: new Set(
      database
        .prepare('select id from stored_responses')
        .all()
        .map(({ id }) => id),
    ),
    admitted: new Map(world.admitted.map((each) => [each.opening.id, each])),
    atRest,
    recovered: before
      .filter(({ id, state, charged }) => after.get(id)?.state !== state || after.get(id)?.charged !== charged)
      .map(({ id }) => id),
    finalExchange,
  }
}

/** The service's ID of an exchange, if its client received it. */
export function idOf({ response }: Exchange): string | undefined {
  return response.headers.get('x-request-id')
}

/** The calls for an exchange; for a named request, for all exchanges that send it. */
export function callsOf({ calls }: Evidence, exchange: Exchange): ProviderCall[] {
  const { number } = firstOf(exchange)
  return calls.filter(({ request }) => request === number)
}

export function isFusion({ plan }: Exchange): boolean {
  return plan.profile === fusionId
}

/** Text that a provider wrote for this request, as far as the client received it. */
export function hasContent({ response }: Exchange): boolean {
  return response.status === 200 && /for-\d+-\d+-\d+/.test(response.body)
}

/** Every plan that the account may have had. */
export function plansOf({ world, admitted }: Evidence, account: number): readonly Plan[] {
  const { template } = world
  const { id, plan } = template.accounts[account]!
  const changed = world.changes.flatMap(({ action }) =>
    action.do === 'plan' && action.account === account ? [action.plan] : [],
  )
  const names = new Set([plan, ...changed])
  const used = [...admitted.values()].filter(({ opening }) => opening.accountId === id)
  return [...template.config.plans.filter((each) => names.has(each.id)), ...used.map((each) => each.plan)]
}

/** Whether the process that was asked ended, or its machine stopped, before the exchange ended. */
export function sawDisturbance({ world }: Evidence, { startedMs, endedMs }: Exchange): boolean {
  const untilMs = (endedMs ?? Number.POSITIVE_INFINITY) + 10
  const isWithin = ({ atMs }: { readonly atMs: number }): boolean => atMs >= startedMs - 10 && atMs <= untilMs
  return (
    world.crashes.some(isWithin) ||
    world.pauses.some(isWithin) ||
    world.restarts.some((restart) => isWithin(restart) || (restart.atMs <= startedMs && restart.untilMs >= startedMs))
  )
}

/** Whether the disk did not work at some time during the exchange. */
export function sawOutage({ world }: Evidence, { startedMs, endedMs }: Exchange): boolean {
  return world.outages.some(({ fromMs, untilMs }) => untilMs >= startedMs && fromMs <= (endedMs ?? untilMs))
}
