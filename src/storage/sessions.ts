import type { SessionQueries } from '../accounts/ports.ts'
import type { Session, SignInMethod } from '../domain/identity.ts'
import { defineStore } from './define-store.ts'
import type { SessionRow } from './schema/schema-identity.ts'

/** Sessions of the web app. */
export const sessionStore = defineStore<SessionQueries>({
  async addSession(db, session, digest, maxSessions) {
    await db.transaction().execute(async (transaction) => {
      const retained = await transaction
        .selectFrom('sessions')
        .select('id')
        .where('account_id', '=', session.accountId)
        .orderBy('last_seen_at_ms', 'desc')
        .orderBy('id', 'desc')
        .limit(maxSessions - 1)
        .execute()
      await transaction
        .deleteFrom('sessions')
        .where('account_id', '=', session.accountId)
        .where('id', 'not in', ['', ...retained.map(({ id }) => id)])
        .execute()
      await transaction
        .insertInto('sessions')
        .values({
          digest,
          id: session.id,
          account_id: session.accountId,
          method: session.method,
          agent: session.agent,
          created_at_ms: Math.floor(session.createdAtMs),
          last_seen_at_ms: Math.floor(session.lastSeenAtMs),
          expires_at_ms: Math.floor(session.expiresAtMs),
        })
        .execute()
    })
  },

  async findSession(db, digest) {
    const row = await db.selectFrom('sessions').selectAll().where('digest', '=', digest).executeTakeFirst()
    return row === undefined ? undefined : readSession(row)
  },

  async touchSession(db, digest, nowMs) {
    await db
      .updateTable('sessions')
      .set({ last_seen_at_ms: Math.floor(nowMs) })
      .where('digest', '=', digest)
      .execute()
  },

  async listSessions(db, accountId) {
    const rows = await db
      .selectFrom('sessions')
      .selectAll()
      .where('account_id', '=', accountId)
      .orderBy('last_seen_at_ms', 'desc')
      .orderBy('id', 'desc')
      .execute()
    return rows.map(readSession)
  },

  async removeSession(db, accountId, sessionId) {
    const result = await db
      .deleteFrom('sessions')
      .where('account_id', '=', accountId)
      .where('id', '=', sessionId)
      .executeTakeFirstOrThrow()
    return result.numDeletedRows > 0n
  },

  async removeSessions(db, accountId) {
    await db.deleteFrom('sessions').where('account_id', '=', accountId).execute()
  },
})

function readSession(row: SessionRow): Session {
  return {
    id: row.id,
    accountId: row.account_id,
    method: row.method as SignInMethod,
    agent: row.agent,
    createdAtMs: row.created_at_ms,
    lastSeenAtMs: row.last_seen_at_ms,
    expiresAtMs: row.expires_at_ms,
  }
}
