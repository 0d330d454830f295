import { sql } from 'kysely'
import type { RefusedQueries } from '../accounts/ports.ts'
import type { RefusedCount, RefusedHour } from '../domain/refused-requests.ts'
import { defineStore } from './define-store.ts'
import { isOnSqlite } from './engine.ts'
import type { RefusedRequestsRow } from './schema/schema.ts'

/** Counts of rejected requests, with retention. */
export interface RefusedRequestStore extends RefusedQueries {
  /** Adds counts to their hours. */
  addRefused(hours: readonly RefusedHour[]): Promise<void>
  /** Deletes at most `limit` counts of hours that began before `timeMs` and returns how many. */
  deleteRefusedBefore(timeMs: number, limit: number): Promise<number>
}

/** Stores them on either engine. */
export const refusedRequestStore = defineStore<RefusedRequestStore>({
  /** Skips counts of deleted accounts: PostgreSQL locks the accounts until the commit, and SQLite has one writer. */
  async addRefused(db, hours) {
    if (hours.length === 0) return
    const isSqlite = isOnSqlite(db)
    const rows = hours.map(
      ({ accountId, hourMs, code, requests, lastRequestId, lastKeyId, lastAtMs }) =>
        sql`(${accountId}, cast(${hourMs} as bigint), ${code}, cast(${requests} as bigint), ${lastRequestId}, ${lastKeyId},
          cast(${Math.floor(lastAtMs)} as bigint))`,
    )
    await sql`
      insert into refused_requests (account_id, hour_ms, code, requests, last_request_id, last_key_id, last_at_ms)
      select counted.* from (values ${sql.join(rows)}) as counted, accounts where accounts.id = counted.column1
      order by column1, column2, column3 ${isSqlite ? sql`` : sql`for key share of accounts`}
      on conflict (account_id, hour_ms, code) do update set
        requests = refused_requests.requests + excluded.requests, last_request_id = excluded.last_request_id,
        last_key_id = excluded.last_key_id, last_at_ms = excluded.last_at_ms`.execute(db)
  },

  async sumRefused(db, { accountId, fromMs, untilMs, limit }) {
    const { rows } = await sql<Omit<RefusedRequestsRow, 'hour_ms'>>`
      select account_id, code, total as requests, last_request_id, last_key_id, last_at_ms from (
        select account_id, code, last_request_id, last_key_id, last_at_ms,
          cast(sum(requests) over (partition by account_id, code) as bigint) as total,
          row_number() over (partition by account_id, code order by hour_ms desc) as recency
        from refused_requests
        where hour_ms >= ${Math.floor(fromMs)} and hour_ms < ${Math.floor(untilMs)}
          ${accountId === undefined ? sql`` : sql`and account_id = ${accountId}`}
      ) as counted
      where recency = 1 order by last_at_ms desc, account_id, code limit ${limit}`.execute(db)
    return rows.map(readRefused)
  },

  async listRefusedHours(db, accountId, before, limit) {
    let query = db.selectFrom('refused_requests').selectAll().where('account_id', '=', accountId)
    if (before !== undefined) query = query.where(sql<boolean>`(hour_ms, code) < (${before.hourMs}, ${before.code})`)
    const rows = await query.orderBy('hour_ms', 'desc').orderBy('code', 'desc').limit(limit).execute()
    return rows.map((row) => ({ ...readRefused(row), hourMs: row.hour_ms }))
  },

  async deleteRefusedBefore(db, timeMs, limit) {
    const result = await sql`
      delete from refused_requests where (account_id, hour_ms, code) in (
        select account_id, hour_ms, code from refused_requests where hour_ms < ${Math.floor(timeMs)}
        order by hour_ms limit ${limit}
      )`.execute(db)
    return Number(result.numAffectedRows ?? 0)
  },
})

function readRefused(row: Omit<RefusedRequestsRow, 'hour_ms'>): RefusedCount {
  return {
    accountId: row.account_id,
    code: row.code,
    requests: row.requests,
    lastRequestId: row.last_request_id,
    lastKeyId: row.last_key_id,
    lastAtMs: row.last_at_ms,
  }
}
