import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Kysely, sql, SqliteAdapter } from 'kysely'
import type { ActivityQueries, UsageGroup } from '../accounts/ports.ts'
import { dayOf } from '../domain/uptime.ts'
import { dayMs } from '../runtime/durations.ts'
import { addUpCache } from './cache-usage.ts'
import { defineStore } from './define-store.ts'
import { readRequest } from './requests.ts'
import type { Tables } from './schema/schema.ts'

interface GroupRow {
  readonly profile: string
  readonly key_id: string
  readonly backend: string | null
  readonly error_code: string | null
  readonly requests: number
  readonly charged: number
  readonly input_tokens: number
  readonly output_tokens: number
  readonly estimated: number
  readonly plain_requests: number
  readonly plain_input: number
  readonly plain_output: number
  readonly plain_cached: number
  readonly fused_requests: number
  readonly fused_priced: number
  readonly fused_usd: number
}

/** An account's own requests. */
export const activityStore = defineStore<ActivityQueries>({
  /** One day at a time, yielding to the event loop in between, because a statement on SQLite blocks it. */
  async addUpUsage(db, accountId, fromMs, untilMs, maxPerDay) {
    const groups: UsageGroup[] = []
    for (let startMs = Math.floor(fromMs / dayMs) * dayMs; startMs < untilMs; startMs += dayMs) {
      const rows = await addUpDay(db, accountId, startMs, maxPerDay)
      const day = dayOf(startMs)
      groups.push(...rows.map((row) => groupOf(day, row)))
      await nextTurn()
    }
    return groups
  },

  addUpCache,

  async listActivity(db, accountId, selection, among) {
    const { fromMs, untilMs, beforeId, outcome, profile, keyId, limit } = selection
    let latest = db.selectFrom('requests').selectAll().where('account_id', '=', accountId)
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
  startMs: number,
  maxPerDay: number,
): Promise<readonly GroupRow[]> {
  // The engines have no common syntax for the last element of a list.
  const isSqlite = db.getExecutor().adapter instanceof SqliteAdapter
  const lastBackend = isSqlite ? sql`json_extract(attempts, '$[#-1].backend')` : sql`attempts::json -> -1 ->> 'backend'`
  // For a request with several fusions, all costs must be known.
  const fusedUsd = isSqlite
    ? sql`(select case when count(*) = count(json_extract(value, '$.costUsd')) then sum(json_extract(value, '$.costUsd')) end
        from json_each(fusions))`
    : sql`(select case when count(*) = count(value ->> 'costUsd') then sum((value ->> 'costUsd')::double precision) end
        from json_array_elements(fusions::json))`
  const ofPlain = (column: string): ReturnType<typeof sql> =>
    sql`cast(sum(case when fusions is null then coalesce(${sql.ref(column)}, 0) else 0 end) as bigint)`
  const { rows } = await sql<GroupRow>`
    select profile, key_id, backend, error_code,
      count(*) as requests, cast(sum(charged) as bigint) as charged,
      cast(sum(coalesce(input_tokens, 0)) as bigint) as input_tokens,
      cast(sum(coalesce(output_tokens, 0)) as bigint) as output_tokens,
      cast(sum(case when usage_source = 'estimated' then 1 else 0 end) as bigint) as estimated,
      cast(sum(case when fusions is null and usage_source is not null then 1 else 0 end) as bigint) as plain_requests,
      ${ofPlain('input_tokens')} as plain_input, ${ofPlain('output_tokens')} as plain_output,
      ${ofPlain('cached_tokens')} as plain_cached,
      count(fusions) as fused_requests, count(fused_usd) as fused_priced, coalesce(sum(fused_usd), 0) as fused_usd
    from (
      select profile, key_id, error_code, charged, input_tokens, output_tokens, cached_tokens, usage_source, fusions,
        case when fusions is null then null else ${fusedUsd} end as fused_usd, ${lastBackend} as backend
      from requests
      where account_id = ${accountId} and admitted_at_ms >= ${startMs} and admitted_at_ms < ${startMs + dayMs}
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
    costBasis: {
      plain: {
        requests: row.plain_requests,
        inputTokens: row.plain_input,
        outputTokens: row.plain_output,
        cachedTokens: row.plain_cached,
      },
      fused: { requests: row.fused_requests, priced: row.fused_priced, usd: row.fused_usd },
    },
  }
}
