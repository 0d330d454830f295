import { type Kysely, sql } from 'kysely'
import type { ActivityQueries, UsageGroup } from '../accounts/ports.ts'
import { dayOf } from '../domain/uptime.ts'
import { dayMs } from '../runtime/durations.ts'
import { addUpCache } from './cache-usage.ts'
import { addUpCosts } from './cost-sums.ts'
import { defineStore } from './define-store.ts'
import { costSums, type CostSumsRow, dayByDay, lastAttempt, readCostSums } from './request-sums.ts'
import { readRequest } from './requests.ts'
import type { Tables } from './schema/schema.ts'
import { addUpSessions, findSessionCost } from './session-costs.ts'

interface GroupRow extends CostSumsRow {
  readonly profile: string
  readonly key_id: string
  readonly backend: string | null
  readonly error_code: string | null
  readonly requests: number
  readonly charged: number
  readonly input_tokens: number
  readonly output_tokens: number
  readonly estimated: number
  readonly cached_tokens: number
  readonly cache_write_tokens: number
}

interface DaySelection {
  readonly startMs: number
  readonly maxPerDay: number
  readonly session: string | undefined
  readonly keyId: string | undefined
}

/** An account's own requests. */
export const activityStore = defineStore<ActivityQueries>({
  async addUpUsage(db, accountId, { fromMs, untilMs, maxPerDay, session, keyId }) {
    const groups: UsageGroup[] = []
    await dayByDay(fromMs, untilMs, async (startMs) => {
      const rows = await addUpDay(db, accountId, { startMs, maxPerDay, session, keyId })
      const day = dayOf(startMs)
      groups.push(...rows.map((row) => groupOf(day, row)))
    })
    return groups
  },

  addUpCache,
  addUpCosts,
  addUpSessions,
  findSessionCost,

  async listActivity(db, accountId, selection, among) {
    const { fromMs, untilMs, beforeId, outcome, profile, keyId, session, limit } = selection
    let latest = db.selectFrom('requests').selectAll().where('account_id', '=', accountId)
    if (session !== undefined) latest = latest.where('session', '=', session)
    if (fromMs !== undefined) latest = latest.where('admitted_at_ms', '>=', Math.floor(fromMs))
    if (untilMs !== undefined) latest = latest.where('admitted_at_ms', '<', Math.floor(untilMs))
    if (beforeId !== undefined) {
      latest = latest.where(
        sql<boolean>`(admitted_at_ms, id) <
          (select admitted_at_ms, id from requests where id = ${beforeId} and account_id = ${accountId})`,
      )
    }
    // A filter that rarely matches must not scan all of the account's requests.
    let query = db
      .selectFrom(latest.orderBy('admitted_at_ms', 'desc').orderBy('id', 'desc').limit(among).as('latest'))
      .selectAll()
    if (outcome !== undefined) query = query.where('error_code', outcome === 'answered' ? 'is' : 'is not', null)
    if (outcome === 'answered') query = query.where('state', '=', 'done')
    if (profile !== undefined) query = query.where('profile', '=', profile)
    if (keyId !== undefined) query = query.where('key_id', '=', keyId)
    const rows = await query.orderBy('admitted_at_ms', 'desc').orderBy('id', 'desc').limit(limit).execute()
    return rows.map(readRequest)
  },

  async findActivity(db, accountId, requestId) {
    const row = await db
      .selectFrom('requests')
      .selectAll()
      .where('id', '=', requestId)
      .where('account_id', '=', accountId)
      .executeTakeFirst()
    return row === undefined ? undefined : readRequest(row)
  },
})

async function addUpDay(
  db: Kysely<Tables>,
  accountId: string,
  { startMs, maxPerDay, session, keyId }: DaySelection,
): Promise<readonly GroupRow[]> {
  const { rows } = await sql<GroupRow>`
    select profile, key_id, backend, error_code,
      count(*) as requests, cast(sum(charged) as bigint) as charged,
      cast(sum(coalesce(input_tokens, 0)) as bigint) as input_tokens,
      cast(sum(coalesce(output_tokens, 0)) as bigint) as output_tokens,
      cast(sum(case when usage_source = 'estimated' then 1 else 0 end) as bigint) as estimated,
      cast(sum(coalesce(cached_tokens, 0)) as bigint) as cached_tokens,
      cast(sum(coalesce(cache_write_tokens, 0)) as bigint) as cache_write_tokens, ${costSums}
    from (
      select profile, key_id, error_code, charged, input_tokens, output_tokens, cached_tokens, cache_write_tokens,
        usage_source, cost, cache_saved, ${lastAttempt(db, 'backend')} as backend
      from requests
      where account_id = ${accountId} and admitted_at_ms >= ${startMs} and admitted_at_ms < ${startMs + dayMs}
        ${session === undefined ? sql`` : sql`and session = ${session}`}
        ${keyId === undefined ? sql`` : sql`and key_id = ${keyId}`}
      order by admitted_at_ms desc limit ${maxPerDay}
    ) as latest
    group by profile, key_id, backend, error_code
    order by requests desc, profile, key_id`.execute(db)
  return rows
}

function groupOf(day: string, row: GroupRow): UsageGroup {
  return {
    day,
    profile: row.profile,
    keyId: row.key_id,
    backend: row.backend,
    errorCode: row.error_code,
    requests: row.requests,
    charged: row.charged,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    estimated: row.estimated,
    cachedTokens: row.cached_tokens,
    cacheWriteTokens: row.cache_write_tokens,
    cost: readCostSums(row),
  }
}
