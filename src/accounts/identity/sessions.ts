import type { Account } from '../../domain/accounts.ts'
import type { Session } from '../../domain/identity.ts'
import { dayMs } from '../../runtime/durations.ts'
import { idMinter } from '../../runtime/ids.ts'
import type { Secret } from '../../runtime/secret.ts'
import { mintToken, tokenDigest } from '../../runtime/tokens.ts'
import type { IdentityDeps } from './identity.ts'

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
  deps: IdentityDeps,
  accountId: string,
  { method, agent }: Pick<Session, 'method' | 'agent'>,
): Promise<{ readonly token: Secret; readonly session: Session }> {
  const token = mintToken(deps.random)
  const nowMs = Math.floor(deps.clock.nowMs())
  const session: Session = {
    id: idMinter('ses_', () => nowMs, deps.random)(),
    accountId,
    method,
    agent,
    createdAtMs: nowMs,
    lastSeenAtMs: nowMs,
    expiresAtMs: nowMs + sessionLifeMs,
  }
  await deps.store.addSession(session, sessionDigest(deps, token.reveal()), maxSessionsPerAccount)
  return { token, session }
}

/** The session and account of a token; undefined if it is unknown or has ended. */
export async function findSession(
  deps: IdentityDeps,
  token: string,
): Promise<{ readonly session: Session; readonly account: Account } | undefined> {
  if (!tokenShape.test(token)) return undefined
  const digest = sessionDigest(deps, token)
  const session = await deps.store.findSession(digest)
  if (session === undefined) return undefined
  const nowMs = Math.floor(deps.clock.nowMs())
  if (hasEnded(session, nowMs)) {
    await deps.store.removeSession(session.accountId, session.id)
    return undefined
  }
  const account = await deps.store.findAccount(session.accountId)
  if (account === undefined) return undefined
  if (nowMs - session.lastSeenAtMs >= touchEveryMs) await deps.store.touchSession(digest, nowMs)
  return { session, account }
}

/** An account's open sessions, the most recently used first. */
export async function listSessions(deps: IdentityDeps, accountId: string): Promise<readonly Session[]> {
  const nowMs = deps.clock.nowMs()
  const sessions = await deps.store.listSessions(accountId)
  return sessions.filter((session) => !hasEnded(session, nowMs))
}

/** Ends one session; false if the account has none with that id. */
export function endSession(deps: IdentityDeps, accountId: string, sessionId: string): Promise<boolean> {
  return deps.store.removeSession(accountId, sessionId)
}

/** Ends every session of an account: signed out everywhere. */
export function endEverySession(deps: IdentityDeps, accountId: string): Promise<void> {
  return deps.store.removeSessions(accountId)
}

/** Whether the user signed in recently: a browser left open is not enough for irreversible actions. */
export function isFreshSession({ createdAtMs }: Session, nowMs: number): boolean {
  return nowMs < createdAtMs + freshSessionMs
}

function hasEnded({ lastSeenAtMs, expiresAtMs }: Session, nowMs: number): boolean {
  return nowMs >= expiresAtMs || nowMs >= lastSeenAtMs + sessionIdleMs
}

function sessionDigest(deps: IdentityDeps, token: string): string {
  return tokenDigest('session', token, deps.pepper)
}
