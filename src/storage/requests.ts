import { sql } from 'kysely'
import type { SkippedBackend } from '../domain/backend-state.ts'
import type { Usage } from '../domain/conversation.ts'
import { boundRecord, type FusionRecord } from '../domain/fusion-record.ts'
import { readDollars } from '../domain/money.ts'
import { type CostRecord, costRecord } from '../domain/request-cost.ts'
import type { RequestOutcome, RequestRecord, RequestState } from '../domain/requests.ts'
import type { Attempt } from '../domain/upstream.ts'
import { lowestIdAt } from '../runtime/ids.ts'
import { maxTokenCount } from '../runtime/token-counts.ts'
import { defineStore } from './define-store.ts'
import type { RequestRow } from './schema/schema.ts'

/** Maximum number of fusions in one record. */
const maxFusions = 8
/** Maximum number of skipped backends in one record. */
const maxSkippedBackends = 32

/** Filters for request records: newest first, those before `beforeId` if given. */
interface RequestSelection {
  readonly accountId?: string
  readonly limit: number
  readonly beforeId?: string
  /** Not combined with `accountId`. */
  readonly profile?: string
  /** Only those admitted since this time. Not combined with `accountId`. */
  readonly sinceMs?: number
}

/** Reads the ledger's records, and applies their retention. */
export interface RequestStore {
  findRequest(id: string): Promise<RequestRecord | undefined>
  /** Newest first: by ID, or by admission time within one account. */
  listRequests(selection: RequestSelection): Promise<readonly RequestRecord[]>
  /** Units an account used in a period (`2026-11`); on PostgreSQL including running requests. */
  usedUnits(accountId: string, periodId: string): Promise<number>
  /** When each key was last used, by ID, among at most the account's latest `among` requests. */
  lastKeyUses(accountId: string, among: number): Promise<ReadonlyMap<string, number>>
  /**
   * Deletes at most `limit` of the oldest records created before `timeMs` and returns how many: call it again while it
   * returns `limit`. Used units are not touched. `timeMs` must be earlier than the start of any running request.
   */
  deleteRequestsBefore(timeMs: number, limit: number): Promise<number>
}

/** Records of requests. */
export const requestStore = defineStore<RequestStore>({
  async findRequest(db, id) {
    const row = await db.selectFrom('requests').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? undefined : readRequest(row)
  },

  async listRequests(db, { accountId, limit, beforeId, profile, sinceMs }) {
    let query = db.selectFrom('requests').selectAll().limit(limit)
    if (accountId === undefined) {
      if (beforeId !== undefined) query = query.where('id', '<', beforeId)
      if (sinceMs !== undefined) query = query.where('id', '>=', lowestIdAt('req_', sinceMs))
      if (profile !== undefined) query = query.where('profile', '=', profile)
      return (await query.orderBy('id', 'desc').execute()).map(readRequest)
    }
    query = query.where('account_id', '=', accountId)
    if (beforeId !== undefined) {
      query = query.where(
        sql<boolean>`(admitted_at_ms, id) < (select admitted_at_ms, id from requests where id = ${beforeId})`,
      )
    }
    return (await query.orderBy('admitted_at_ms', 'desc').orderBy('id', 'desc').execute()).map(readRequest)
  },

  async usedUnits(db, accountId, periodId) {
    const row = await db
      .selectFrom('usage')
      .select('used')
      .where('account_id', '=', accountId)
      .where('period_id', '=', periodId)
      .executeTakeFirst()
    return row?.used ?? 0
  },

  async lastKeyUses(db, accountId, among) {
    const rows = await db
      .selectFrom((from) =>
        from
          .selectFrom('requests')
          .select(['key_id', 'admitted_at_ms'])
          .where('account_id', '=', accountId)
          .orderBy('admitted_at_ms', 'desc')
          .limit(among)
          .as('latest'),
      )
      .select((row) => ['key_id', row.fn.max<number>('admitted_at_ms').as('last')])
      .groupBy('key_id')
      .execute()
    return new Map(rows.map((row) => [row.key_id, row.last]))
  },

  async deleteRequestsBefore(db, timeMs, limit) {
    const result = await db
      .deleteFrom('requests')
      .where('id', 'in', (inner) =>
        inner
          .selectFrom('requests')
          .select('id')
          .where('id', '<', lowestIdAt('req_', timeMs))
          .orderBy('id')
          .limit(limit),
      )
      .executeTakeFirstOrThrow()
    return Number(result.numDeletedRows)
  },
})

/** An outcome as it is stored, bounded in size. */
export type OutcomeColumns = ReturnType<typeof outcomeColumns>

/** The columns of an outcome, the same on both engines. */
export function outcomeColumns(outcome: RequestOutcome) {
  const { usage, cost } = outcome
  const amount = amountColumn(cost?.usd)
  return {
    charged: outcome.charged,
    attempts: outcome.attempts.length === 0 ? null : JSON.stringify(outcome.attempts),
    input_tokens: countColumn(usage?.inputTokens),
    output_tokens: countColumn(usage?.outputTokens),
    cached_tokens: countColumn(usage?.cachedTokens),
    reasoning_tokens: countColumn(usage?.reasoningTokens),
    usage_source: orNull(usage?.source),
    error_code: orNull(outcome.errorCode),
    first_content_ms: outcome.firstContentMs === undefined ? null : Math.round(outcome.firstContentMs),
    total_ms: Math.round(outcome.totalMs),
    fusions: outcome.fusions === undefined ? null : writeFusions(outcome.fusions),
    cache_write_tokens: countColumn(usage?.cacheWriteTokens),
    usage_details: usage === undefined ? null : usageDetails(usage),
    // What it cost, in picodollars. An amount beyond what a double represents exactly is as good as unknown.
    cost: amount,
    cost_source: amount === null ? null : cost?.estimated === true ? 'estimated' : 'counted',
    cache_saved: amount === null ? null : amountColumn(cost?.savedUsd),
    price_version: orNull(cost?.prices),
    passed_by: outcome.passedBy === undefined ? null : JSON.stringify(outcome.passedBy.slice(0, maxSkippedBackends)),
    session: orNull(outcome.session),
  }
}

function orNull<Value>(value: Value | undefined): Value | null {
  return value === undefined ? null : value
}

/** The members that most usages have, and that have columns of their own. */
const usualMembers = 5

/** What has no column of its own, as JSON; null if there is nothing. */
function usageDetails(usage: Usage): string | null {
  if (Object.keys(usage).length === usualMembers) return null
  const {
    inputTokens: _i,
    outputTokens: _o,
    cachedTokens: _c,
    reasoningTokens: _r,
    source: _s,
    parts: _p,
    cacheWriteTokens: _w,
    ...details
  } = usage
  return Object.keys(details).length === 0 ? null : JSON.stringify(details)
}

function amountColumn(usd: string | undefined): number | null {
  const amount = Number(usd === undefined ? NaN : readDollars(usd))
  return Number.isSafeInteger(amount) ? amount : null
}

/** Bounded, so that rows and their sums can always be read, whatever a provider or a large fusion counted. */
function countColumn(tokens: number | undefined): number | null {
  return tokens === undefined ? null : Math.min(tokens, maxTokenCount)
}

/** Bounded, because every listing of records reads the row whole. */
function writeFusions(fusions: readonly FusionRecord[]): string {
  return JSON.stringify(fusions.slice(0, maxFusions).map(boundRecord))
}

/** Converts a row to a record. */
export function readRequest(row: RequestRow): RequestRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    keyId: row.key_id,
    profile: row.profile,
    format: row.format,
    stream: row.stream !== 0,
    units: row.units,
    periodId: row.period_id,
    admittedAtMs: row.admitted_at_ms,
    state: row.state as RequestState,
    charged: row.charged,
    attempts: row.attempts === null ? [] : (JSON.parse(row.attempts) as Attempt[]),
    totalMs: row.total_ms ?? 0,
    ...(row.usage_source === null ? undefined : { usage: readUsage(row) }),
    ...(row.cost === null ? undefined : { cost: readCost(row, row.cost) }),
    ...(row.error_code === null ? undefined : { errorCode: row.error_code as NonNullable<RequestRecord['errorCode']> }),
    ...(row.first_content_ms === null ? undefined : { firstContentMs: row.first_content_ms }),
    ...(row.session === null ? undefined : { session: row.session }),
    ...(row.passed_by === null ? undefined : { passedBy: JSON.parse(row.passed_by) as SkippedBackend[] }),
    ...(row.fusions === null ? undefined : { fusions: JSON.parse(row.fusions) as FusionRecord[] }),
  }
}

function readUsage(row: RequestRow): NonNullable<RequestRecord['usage']> {
  return {
    inputTokens: row.input_tokens ?? 0,
    outputTokens: row.output_tokens ?? 0,
    cachedTokens: row.cached_tokens ?? 0,
    reasoningTokens: row.reasoning_tokens ?? 0,
    source: row.usage_source as 'counted' | 'estimated',
    ...(row.cache_write_tokens === null ? undefined : { cacheWriteTokens: row.cache_write_tokens }),
    ...(row.usage_details === null ? undefined : (JSON.parse(row.usage_details) as Partial<Usage>)),
  }
}

function readCost(
  { cost_source: source, cache_saved: saved, price_version: prices }: RequestRow,
  cost: number,
): CostRecord {
  return costRecord({
    amount: BigInt(cost),
    saved: saved === null ? undefined : BigInt(saved),
    isEstimated: source === 'estimated',
    ...(prices === null ? {} : { prices }),
  })
}
