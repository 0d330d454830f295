import { type Kysely, sql } from 'kysely'
import {
  type KeyRate,
  type Moment,
  minuteDenial,
  momentAt,
  monthDenial,
  type Standing,
  tighterStanding,
  usageSignals,
  type UsageSignals,
} from '../../domain/account-meter.ts'
import type { BudgetClaim, BudgetStanding } from '../../domain/budgets.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Plan } from '../../domain/plans.ts'
import type { RequestOpening } from '../../domain/requests.ts'
import { minuteMs } from '../../runtime/minute-log.ts'
import type { Tables } from '../schema/schema.ts'
import { denialError } from './denial-error.ts'
import type { FullMinute } from './minute-refusals.ts'
import { rowFaultOf } from './row-fault.ts'

/** A request that waits for its admission. */
export interface Asking {
  readonly opening: RequestOpening
  readonly plan: Plan
  readonly rate: KeyRate | undefined
  readonly claim?: BudgetClaim | undefined
  /** The number of the next delivery mark when it arrived. */
  readonly dueMark: number
}

/** A refusal by the budgets: the state of each budget of the claim, in its order. */
export interface RefusedByBudgets {
  readonly standings: readonly BudgetStanding[]
  readonly nowMs: number
}

/** A refusal, and whether the minute was the reason. */
interface Refused {
  readonly error: ServiceError
  readonly fullMinute: FullMinute | undefined
}

/** The counters including the request, and the output limit that its budgets can pay for. */
export interface Admitted extends UsageSignals {
  readonly outputTokens?: number
}

/** What the database decided. */
export type Decided = Admitted | Refused | RefusedByBudgets

/** One row of `svc_router_admit_2` or `_3`, or of `readCounters`. The last four are null if they count nothing. */
interface CounterRow {
  readonly out_denied: 'minute' | 'month' | 'budget' | null
  readonly out_now_ms: number
  readonly out_used: number
  readonly out_open: number
  readonly out_oldest_ms: number | null
  readonly out_key_open: number | null
  readonly out_key_oldest_ms: number | null
  /** Only with claims: the output limit, and for a refusal `[bucket, spent, held, oldest]` of each budget. */
  readonly out_output?: number | null
  readonly out_budgets?: readonly (readonly [number, number, number, number | null])[] | null
}

/** The node that decides a batch, and until when it waits for that: epoch milliseconds of the database's clock. */
interface BatchOwner {
  readonly nodeId: string
  readonly expiresMs: number
}

/**
 * Decides requests in one statement, in the order of the batch within each account. An account's requests in one batch
 * must have the same plan, and a key's the same limit. Nothing is admitted if the batch has expired.
 */
export async function decideBatch(
  db: Kysely<Tables>,
  { nodeId, expiresMs }: BatchOwner,
  batch: readonly Asking[],
): Promise<readonly Decided[]> {
  let hasClaims = false
  const given = batch.map(({ opening, plan, rate, claim, dueMark }, n) => ({
    n,
    id: opening.id,
    account_id: opening.accountId,
    key_id: opening.keyId,
    profile: opening.profile,
    format: opening.format,
    stream: opening.stream ? 1 : 0,
    units: opening.units,
    per_minute: plan.requestsPerMinute,
    per_month: plan.requestsPerMonth,
    key_per_minute: rate?.perMinute ?? null,
    due_mark: dueMark,
    ...(claim !== undefined && (hasClaims = true) && { claim: claimJson(claim) }),
  }))
  const admit = sql.raw(hasClaims ? 'svc_router_admit_3' : 'svc_router_admit_2')
  const { rows } = await sql<CounterRow & { readonly out_n: number }>`
    select * from ${admit}(${JSON.stringify(given)}::jsonb, ${nodeId}, ${Math.ceil(expiresMs)})`.execute(db)
  const decided = Array.from<Decided | undefined>({ length: batch.length })
  for (const row of rows) decided[row.out_n] = decidedBy(row, batch[row.out_n]!)
  // There is no row for an account that was deleted while the statement waited for its lock.
  return decided.map((one) => one ?? unrecorded())
}

interface AloneOptions {
  readonly onBadRow: (reason: string) => void
  /** Whether the node no longer waits for the batch. */
  readonly isExpired: () => boolean
}

/**
 * Decides a batch. If the database refuses a row of it, each request is decided by itself, and only that one gets an error.
 * Those that are left when the batch has expired are not admitted.
 */
export async function decideAlone(
  decide: (batch: readonly Asking[]) => Promise<readonly Decided[]>,
  batch: readonly Asking[],
  { onBadRow, isExpired }: AloneOptions,
): Promise<readonly Decided[]> {
  try {
    return await decide(batch)
  } catch (error) {
    const reason = rowFaultOf(error)
    if (reason === undefined) throw error
    if (batch.length === 1) {
      onBadRow(reason)
      return [unrecorded(error)]
    }
  }
  const decided: Decided[] = []
  for (const asking of batch) {
    if (isExpired()) decided.push(unrecorded())
    else decided.push(...(await decideAlone(decide, [asking], { onBadRow, isExpired })))
  }
  return decided
}

/** The refusal of a request that was not recorded. */
function unrecorded(cause?: unknown): Refused {
  const error = new ServiceError('record_unavailable', { retryAfterSeconds: 1, cause })
  return { error, fullMinute: undefined }
}

function decidedBy(row: CounterRow, { plan, rate }: Pick<Asking, 'plan' | 'rate'>): Decided {
  const now = momentAt(row.out_now_ms)
  if (row.out_denied === 'budget') {
    const standings = row.out_budgets!.map(([, spent, held, oldestMs]) => ({ spent, held, oldestMs }))
    return { standings, nowMs: row.out_now_ms }
  }
  if (row.out_denied === null) {
    const signals = signalsOf(row, now, plan, rate)
    return typeof row.out_output === 'number' ? { ...signals, outputTokens: row.out_output } : signals
  }
  const signals = signalsOf(row, now, plan, rate)
  if (row.out_denied === 'month')
    return { error: denialError(monthDenial(now.period), plan, signals), fullMinute: undefined }
  const standing = standingOf(row, now, plan, rate)
  const error = denialError(minuteDenial(now.monotonicMs, standing), plan, signals)
  return { error, fullMinute: { freeInMs: standing.freeAtMs - now.monotonicMs, standing, signals } }
}

/** A claim as `svc_router_admit_3` reads it. */
function claimJson({ budgets, base, perOutputToken, leastOutput, mostOutput }: BudgetClaim) {
  return {
    budgets: budgetsJson(budgets),
    base: [base.nanoUsd, base.tokens],
    per: [perOutputToken.nanoUsd, perOutputToken.tokens],
    least: leastOutput,
    most: mostOutput,
  }
}

/** Budgets as the functions of the database read them. */
export function budgetsJson(budgets: BudgetClaim['budgets']) {
  return budgets.map(({ id, window, rolling, limit, unit }) => [id, window, rolling ? 1 : 0, limit, unit])
}

/** An account's counters by the database's clock, taking nothing. */
export async function readSignals(
  db: Kysely<Tables>,
  accountId: string,
  plan: Plan,
  rate: KeyRate | undefined,
): Promise<UsageSignals> {
  const inMinute = sql`q.account_id = ${accountId} and q.admitted_at_ms > now.ms - ${minuteMs} and q.number is not null`
  const newest = (limit: number) => sql`order by q.admitted_at_ms desc, q.number desc limit ${limit}`
  const ofKey = (value: string) =>
    rate === undefined
      ? sql`null::bigint`
      : sql`(select ${sql.raw(value)} from (select q.admitted_at_ms from requests q
          where ${inMinute} and q.key_id = ${rate.keyId} ${newest(rate.perMinute)}) k)`
  const { rows } = await sql<CounterRow>`
    with now as materialized (
      select clock_timestamp() as at, greatest(
        ceil(extract(epoch from clock_timestamp()) * 1000)::bigint,
        coalesce((select last_at_ms from meters where account_id = ${accountId}), 0)
      ) as ms
    )
    select null as out_denied, now.ms as out_now_ms,
      coalesce((select used from usage where account_id = ${accountId}
        and period_id = to_char(now.at at time zone 'UTC', 'YYYY-MM')), 0) as out_used,
      coalesce((select m.admitted from meters m where m.account_id = ${accountId}) - first.number + 1, 0) as out_open,
      first.admitted_at_ms as out_oldest_ms,
      ${ofKey('count(*)')} as out_key_open, ${ofKey('min(k.admitted_at_ms)')} as out_key_oldest_ms
    from now left join lateral (
      select q.number, q.admitted_at_ms from requests q where ${inMinute}
      order by q.admitted_at_ms, q.number limit 1
    ) first on true`.execute(db)
  const row = rows[0]
  if (row === undefined) throw new Error('the database returned no counters')
  return signalsOf(row, momentAt(row.out_now_ms), plan, rate)
}

function signalsOf(row: CounterRow, now: Moment, plan: Plan, rate: KeyRate | undefined): UsageSignals {
  return usageSignals(now, standingOf(row, now, plan, rate), plan, row.out_used)
}

function standingOf(row: CounterRow, { monotonicMs }: Moment, plan: Plan, rate: KeyRate | undefined): Standing {
  const standing = (limit: number, open: number, oldestMs: number | null, isOfKey: boolean): Standing => ({
    limit,
    remaining: Math.max(0, limit - open),
    freeAtMs: oldestMs === null ? monotonicMs : oldestMs + minuteMs,
    isOfKey,
  })
  const account = standing(plan.requestsPerMinute, row.out_open, row.out_oldest_ms, false)
  return tighterStanding(account, rate && standing(rate.perMinute, row.out_key_open ?? 0, row.out_key_oldest_ms, true))
}
