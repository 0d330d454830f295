import type { Account } from '../domain/accounts.ts'
import { idMinter } from '../domain/ids.ts'
import type { Session } from '../domain/identity.ts'
import type { Secret } from '../domain/secret.ts'
import { mintToken, tokenDigest } from '../domain/tokens.ts'
import type { IdentityPlane } from './identity.ts'

const dayMs = 86_400_000
/** A session ends when it was not used for so long (contract 19.6). */
export const sessionIdleMs = 7 * dayMs
/** And so long after signing in, however much it is used (contract 19.6). */
export const sessionLifeMs = 30 * dayMs
/** Its last use is written down this often at most, so that reading pages does not write. */
const touchEveryMs = 5 * 60_000
/** An account's sessions; one more ends the one that was used longest ago (contract 19.6). */
const maxSessionsPerAccount = 50
/** What cannot be undone is only done by somebody who signed in so lately (contract 19.10). */
export const freshSessionMs = 15 * 60_000
const tokenShape = /^[A-Za-z0-9_-]{43}$/

/** Opens a session: a new token each time, so that nobody can plant one before (contract 19.6). */
export async function openSession(
  plane: IdentityPlane,
  accountId: string,
  { method, agent }: Pick<Session, 'method' | 'agent'>,
): Promise<{ readonly token: Secret; readonly session: Session }> {
  const token = mintToken(plane.random)
  const nowMs = Math.floor(plane.clock.nowMs())
  const session: Session = {
    id: idMinter('ses_', () => nowMs, plane.random)(),
    accountId,
    method,
    agent,
    createdAtMs: nowMs,
    lastSeenAtMs: nowMs,
    expiresAtMs: nowMs + sessionLifeMs,
  }
  await plane.store.addSession(session, sessionDigest(plane, token.reveal()), maxSessionsPerAccount)
  return { token, session }
}

/** The session of a token and its account; undefined where it is none, or has ended. */
export async function findSession(
  plane: IdentityPlane,
  token: string,
): Promise<{ readonly session: Session; readonly account: Account } | undefined> {
  if (!tokenShape.test(token)) return undefined
  const digest = sessionDigest(plane, token)
  const session = await plane.store.findSession(digest)
  if (session === undefined) return undefined
  const nowMs = Math.floor(plane.clock.nowMs())
  if (hasEnded(session, nowMs)) {
    await plane.store.removeSession(session.accountId, session.id)
    return undefined
  }
  const account = await plane.store.findAccount(session.accountId)
  if (account === undefined) return undefined
  if (nowMs - session.lastSeenAtMs >= touchEveryMs) await plane.store.touchSession(digest, nowMs)
  return { session, account }
}

/** The sessions of an account that are still open, the one used last first. */
export async function listSessions(plane: IdentityPlane, accountId: string): Promise<readonly Session[]> {
  const nowMs = plane.clock.nowMs()
  const sessions = await plane.store.listSessions(accountId)
  return sessions.filter((session) => !hasEnded(session, nowMs))
}

/** Ends one session; false where the account has none of that id. */
export function endSession(plane: IdentityPlane, accountId: string, sessionId: string): Promise<boolean> {
  return plane.store.removeSession(accountId, sessionId)
}

/** Ends every session of an account: signed out everywhere. */
export function endEverySession(plane: IdentityPlane, accountId: string): Promise<void> {
  return plane.store.removeSessions(accountId)
}

/** Whether somebody signed in just now: a browser that was left open is not enough for what cannot be undone. */
export function isFreshSession({ createdAtMs }: Session, nowMs: number): boolean {
  return nowMs < createdAtMs + freshSessionMs
}

function hasEnded({ lastSeenAtMs, expiresAtMs }: Session, nowMs: number): boolean {
  return nowMs >= expiresAtMs || nowMs >= lastSeenAtMs + sessionIdleMs
}

function sessionDigest(plane: IdentityPlane, token: string): string {
  return tokenDigest('session', token, plane.pepper)
}
