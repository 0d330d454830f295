import type { Kysely } from 'kysely'
import type { Session, SignInMethod } from '../domain/identity.ts'
import type { SessionRow } from './schema/schema-identity.ts'
import type { Tables } from './schema/schema.ts'

/** Adds a session; beyond `maxSessions` the least recently used ones end. */
export async function addSession(
  db: Kysely<Tables>,
  session: Session,
  digest: string,
  maxSessions: number,
): Promise<void> {
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
}

/** The session with that digest, ended or not. */
export async function findSession(db: Kysely<Tables>, digest: string): Promise<Session | undefined> {
  const row = await db.selectFrom('sessions').selectAll().where('digest', '=', digest).executeTakeFirst()
  return row === undefined ? undefined : readSession(row)
}

/** Records the use of a session. */
export async function touchSession(db: Kysely<Tables>, digest: string, nowMs: number): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ last_seen_at_ms: Math.floor(nowMs) })
    .where('digest', '=', digest)
    .execute()
}

/** An account's sessions, the most recently used first; their number is bounded by `addSession`. */
export async function listSessions(db: Kysely<Tables>, accountId: string): Promise<readonly Session[]> {
  const rows = await db
    .selectFrom('sessions')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('last_seen_at_ms', 'desc')
    .orderBy('id', 'desc')
    .execute()
  return rows.map(readSession)
}

/** Ends one session; false if the account has none with that id. */
export async function removeSession(db: Kysely<Tables>, accountId: string, sessionId: string): Promise<boolean> {
  const result = await db
    .deleteFrom('sessions')
    .where('account_id', '=', accountId)
    .where('id', '=', sessionId)
    .executeTakeFirstOrThrow()
  return result.numDeletedRows > 0n
}

/** Ends every session of an account. */
export async function removeSessions(db: Kysely<Tables>, accountId: string): Promise<void> {
  await db.deleteFrom('sessions').where('account_id', '=', accountId).execute()
}

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
