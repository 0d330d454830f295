import type { OperatorSessionQueries } from '../accounts/operators/operator-ports.ts'
import type { SignInMethod } from '../domain/identity.ts'
import type { OperatorSession } from '../domain/operators.ts'
import { appendEntry } from './audit.ts'
import { defineStore } from './define-store.ts'
import type { OperatorSessionRow } from './schema/schema-identity.ts'

/** Sessions of operators. */
export const operatorSessionStore = defineStore<OperatorSessionQueries>({
  /** The revision stays the same, since no key or plan changes. */
  addOperatorSession(db, session, digest, maxSessions, record) {
    return db.transaction().execute(async (transaction) => {
      // The update blocks a concurrent removal, which would otherwise leave this session open.
      const operator = await transaction
        .updateTable('operators')
        .set((row) => ({ state: row.ref('state') }))
        .where('id', '=', session.operatorId)
        .where('state', '=', 'active')
        .executeTakeFirstOrThrow()
      if (operator.numUpdatedRows === 0n) return false
      const retained = await transaction
        .selectFrom('operator_sessions')
        .select('id')
        .where('operator_id', '=', session.operatorId)
        .orderBy('last_seen_at_ms', 'desc')
        .orderBy('id', 'desc')
        .limit(maxSessions - 1)
        .execute()
      await transaction
        .deleteFrom('operator_sessions')
        .where('operator_id', '=', session.operatorId)
        .where('id', 'not in', ['', ...retained.map(({ id }) => id)])
        .execute()
      await transaction
        .insertInto('operator_sessions')
        .values({
          digest,
          id: session.id,
          operator_id: session.operatorId,
          method: session.method,
          agent: session.agent,
          created_at_ms: session.createdAtMs,
          last_seen_at_ms: session.lastSeenAtMs,
          expires_at_ms: session.expiresAtMs,
          confirmed_at_ms: session.confirmedAtMs,
        })
        .execute()
      await appendEntry(transaction, record)
      return true
    })
  },

  async findOperatorSession(db, digest) {
    const row = await db.selectFrom('operator_sessions').selectAll().where('digest', '=', digest).executeTakeFirst()
    return row === undefined ? undefined : readSession(row)
  },

  async touchOperatorSession(db, digest, nowMs) {
    const last = { last_seen_at_ms: Math.floor(nowMs) }
    await db.updateTable('operator_sessions').set(last).where('digest', '=', digest).execute()
  },

  confirmOperatorSession(db, sessionId, atMs, record) {
    return db.transaction().execute(async (transaction) => {
      const result = await transaction
        .updateTable('operator_sessions')
        .set({ confirmed_at_ms: Math.floor(atMs) })
        .where('id', '=', sessionId)
        .executeTakeFirstOrThrow()
      if (result.numUpdatedRows === 0n) return false
      await appendEntry(transaction, record)
      return true
    })
  },

  async removeOperatorSession(db, sessionId) {
    await db.deleteFrom('operator_sessions').where('id', '=', sessionId).execute()
  },
})

function readSession(row: OperatorSessionRow): OperatorSession {
  return {
    id: row.id,
    operatorId: row.operator_id,
    method: row.method as SignInMethod,
    agent: row.agent,
    createdAtMs: row.created_at_ms,
    lastSeenAtMs: row.last_seen_at_ms,
    expiresAtMs: row.expires_at_ms,
    confirmedAtMs: row.confirmed_at_ms,
  }
}
