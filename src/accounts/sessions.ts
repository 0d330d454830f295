import type { Account } from '../domain/accounts.ts'
import { idMinter } from '../domain/ids.ts'
import type { Session } from '../domain/identity.ts'
import type { Secret } from '../domain/secret.ts'
import { mintToken, tokenDigest } from '../domain/tokens.ts'
import type { IdentityPlane } from './identity.ts'

const dayMs = 86_400_000
/** Idle timeout of a session (contract 19.6). */
export const sessionIdleMs = 7 * dayMs
/** Maximum lifetime of a session, even in constant use (contract 19.6). */
export const sessionLifeMs = 30 * dayMs
/** How often a session's last use is stored at most, so that reading pages does not write each time. */
const touchEveryMs = 5 * 60_000
/** Sessions per account; a new one ends the least recently used (contract 19.6). */
const maxSessionsPerAccount = 50
/** Irreversible actions require a sign-in this recent (contract 19.10). */
export const freshSessionMs = 15 * 60_000
const tokenShape = /^[A-Za-z0-9_-]{43}$/

/** Creates a session, always with a new token, so that nobody can plant one (contract 19.6). */
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

/** The session and account of a token; undefined if it is unknown or has ended. */
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

/** An account's open sessions, the most recently used first. */
export async function listSessions(plane: IdentityPlane, accountId: string): Promise<readonly Session[]> {
  const nowMs = plane.clock.nowMs()
  const sessions = await plane.store.listSessions(accountId)
  return sessions.filter((session) => !hasEnded(session, nowMs))
}

/** Ends one session; false if the account has none with that id. */
export function endSession(plane: IdentityPlane, accountId: string, sessionId: string): Promise<boolean> {
  return plane.store.removeSession(accountId, sessionId)
}

/** Ends every session of an account: signed out everywhere. */
export function endEverySession(plane: IdentityPlane, accountId: string): Promise<void> {
  return plane.store.removeSessions(accountId)
}

/** Whether the user signed in recently: a browser left open is not enough for irreversible actions. */
export function isFreshSession({ createdAtMs }: Session, nowMs: number): boolean {
  return nowMs < createdAtMs + freshSessionMs
}

function hasEnded({ lastSeenAtMs, expiresAtMs }: Session, nowMs: number): boolean {
  return nowMs >= expiresAtMs || nowMs >= lastSeenAtMs + sessionIdleMs
}

function sessionDigest(plane: IdentityPlane, token: string): string {
  return tokenDigest('session', token, plane.pepper)
}
