import { sql, type Kysely } from 'kysely'
import type { CacheSessionStore } from '../gateway/cache/session-store.ts'
import { defineStore } from './define-store.ts'
import { isOnSqlite } from './engine.ts'
import type { Tables } from './schema/schema.ts'

/** Sessions that one account may have stored (contract 45.9). */
const maxPerAccount = 5_000
/** The most sessions that are deleted with one group of an account that has more. */
const evictedAtOnce = 400

/** Sessions on either engine, with retention. */
export interface CacheSessionList extends CacheSessionStore {
  /** Deletes at most `limit` sessions that expired by `timeMs` and returns how many. */
  deleteCacheSessions(timeMs: number, limit: number): Promise<number>
}

export const cacheSessionStore = defineStore<CacheSessionList>({
  async findCacheSession(db, accountId, session) {
    const row = await db
      .selectFrom('cache_sessions')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('session', '=', session)
      .executeTakeFirst()
    if (row === undefined) return undefined
    const { state, updated_at_ms: updatedMs, expires_at_ms: expiresMs } = row
    return { accountId, session, state, updatedMs, expiresMs }
  },

  /** Skips sessions of deleted accounts: PostgreSQL locks the accounts until the commit, and SQLite has one writer. */
  async saveCacheSessions(db, sessions) {
    if (sessions.length === 0) return
    const isSqlite = isOnSqlite(db)
    // One parameter, so that the statement is the same for any number of sessions.
    const rows = JSON.stringify(
      sessions.map(({ accountId, session, state, updatedMs, expiresMs }) => {
        return [accountId, session, state, updatedMs, expiresMs]
      }),
    )
    const saved = isSqlite ? sql`json_each(${rows})` : sql`json_array_elements(cast(${rows} as json))`
    // Every node locks rows in the same order.
    await sql`
      insert into cache_sessions (account_id, session, state, updated_at_ms, expires_at_ms)
      select value ->> 0, value ->> 1, value ->> 2, cast(value ->> 3 as bigint), cast(value ->> 4 as bigint)
      from ${saved} as saved, accounts where accounts.id = value ->> 0
      order by value ->> 0, value ->> 1 ${isSqlite ? sql`` : sql`for key share of accounts`}
      on conflict (account_id, session) do update set
        state = excluded.state, updated_at_ms = excluded.updated_at_ms, expires_at_ms = excluded.expires_at_ms
      where excluded.updated_at_ms >= cache_sessions.updated_at_ms`.execute(db)
    for (const accountId of new Set(sessions.map((one) => one.accountId))) await makeRoom(db, accountId)
  },

  async deleteCacheSessions(db, timeMs, limit) {
    const result = await sql`
      delete from cache_sessions where (account_id, session) in (
        select account_id, session from cache_sessions where expires_at_ms <= ${Math.floor(timeMs)}
        order by expires_at_ms limit ${limit}
      )`.execute(db)
    return Number(result.numAffectedRows ?? 0)
  },
})

/** Deletes the oldest sessions of an account that has too many. Reads only the index unless it has. */
async function makeRoom(db: Kysely<Tables>, accountId: string): Promise<void> {
  await sql`
    delete from cache_sessions where (account_id, session) in (
      select account_id, session from cache_sessions where account_id = ${accountId}
      order by updated_at_ms desc limit ${evictedAtOnce} offset ${maxPerAccount}
    )`.execute(db)
}
