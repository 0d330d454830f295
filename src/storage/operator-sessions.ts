import type { Kysely } from 'kysely'
import type { OperatorStore } from '../accounts/operators/operator-ports.ts'
import type { AuditRecord } from '../domain/audit.ts'
import type { SignInMethod } from '../domain/identity.ts'
import type { OperatorSession } from '../domain/operators.ts'
import { appendEntry } from './audit.ts'
import {
  addOperator,
  findOperator,
  findOperatorByEmail,
  listOperators,
  removeOperator,
  setOperatorRole,
} from './operators.ts'
import type { OperatorSessionRow } from './schema/schema-identity.ts'
import type { Tables } from './schema/schema.ts'

/** Implements the operator port with its queries. */
export function createOperatorStore(db: Kysely<Tables>): OperatorStore {
  return {
    addOperator: (operator, maxOperators, record) => addOperator(db, operator, maxOperators, record),
    findOperator: (id) => findOperator(db, id),
    findOperatorByEmail: (email) => findOperatorByEmail(db, email),
    listOperators: (limit) => listOperators(db, limit),
    setOperatorRole: (id, role, record) => setOperatorRole(db, id, role, record),
    removeOperator: (id, atMs, record) => removeOperator(db, id, atMs, record),
    addOperatorSession: (session, digest, maxSessions, record) => addSession(db, session, digest, maxSessions, record),
    findOperatorSession: (digest) => findSession(db, digest),
    async touchOperatorSession(digest, nowMs) {
      const last = { last_seen_at_ms: Math.floor(nowMs) }
      await db.updateTable('operator_sessions').set(last).where('digest', '=', digest).execute()
    },
    confirmOperatorSession: (sessionId, atMs, record) => confirmSession(db, sessionId, atMs, record),
    async removeOperatorSession(sessionId) {
      await db.deleteFrom('operator_sessions').where('id', '=', sessionId).execute()
    },
  }
}

/** The revision stays the same, since no key or plan changes. */
function addSession(
  db: Kysely<Tables>,
  session: OperatorSession,
  digest: string,
  maxSessions: number,
  record: AuditRecord,
): Promise<boolean> {
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
}

async function findSession(db: Kysely<Tables>, digest: string): Promise<OperatorSession | undefined> {
  const row = await db.selectFrom('operator_sessions').selectAll().where('digest', '=', digest).executeTakeFirst()
  return row === undefined ? undefined : readSession(row)
}

function confirmSession(db: Kysely<Tables>, sessionId: string, atMs: number, record: AuditRecord): Promise<boolean> {
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
}

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
