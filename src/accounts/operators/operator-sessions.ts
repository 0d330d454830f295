import type { SignInMethod } from '../../domain/identity.ts'
import type { Operator, OperatorSession } from '../../domain/operators.ts'
import { idMinter } from '../../runtime/ids.ts'
import type { Secret } from '../../runtime/secret.ts'
import { mintToken, tokenDigest } from '../../runtime/tokens.ts'
import { auditRecord, type AccountsDeps } from '../control-plane.ts'
import type { OperatorStore } from './operator-ports.ts'

const minuteMs = 60_000
/** Idle timeout of a console session (contract 24.4). */
const operatorIdleMs = 30 * minuteMs
/** Maximum lifetime of a console session, even in constant use (contract 24.4). */
export const operatorLifeMs = 12 * 60 * minuteMs
/** How long a confirmation of identity suffices for dangerous actions (contract 24.5). */
const confirmedForMs = 10 * minuteMs
/** How often a session's last use is stored at most. */
const touchEveryMs = minuteMs
/** Sessions per operator; a new one ends the least recently used (contract 24.4). */
const maxSessionsPerOperator = 20
const tokenShape = /^[A-Za-z0-9_-]{43}$/

/** What console sessions need; the operator of the session is the actor. */
export type OperatorIdentity = Omit<AccountsDeps<OperatorStore>, 'actor'>

/** Creates a session with a new token; undefined if the operator was removed meanwhile. */
export async function openOperatorSession(
  plane: OperatorIdentity,
  operatorId: string,
  { method, agent }: { readonly method: SignInMethod; readonly agent: string },
): Promise<{ readonly token: Secret; readonly session: OperatorSession } | undefined> {
  const token = mintToken(plane.random)
  const nowMs = Math.floor(plane.clock.nowMs())
  const session: OperatorSession = {
    id: idMinter('ops_', () => nowMs, plane.random)(),
    operatorId,
    method,
    agent,
    createdAtMs: nowMs,
    lastSeenAtMs: nowMs,
    expiresAtMs: nowMs + operatorLifeMs,
    confirmedAtMs: nowMs,
  }
  const record = auditRecord(
    { ...plane, actor: { kind: 'operator', operatorId } },
    { type: 'operator.signed_in', operatorId },
  )
  const digest = sessionDigest(plane, token.reveal())
  const isAdded = await plane.store.addOperatorSession(session, digest, maxSessionsPerOperator, record)
  return isAdded ? { token, session } : undefined
}

/** The session and operator of a token; undefined if it is unknown, has ended, or its operator was removed. */
export async function findOperatorSession(
  plane: OperatorIdentity,
  token: string,
): Promise<{ readonly session: OperatorSession; readonly operator: Operator } | undefined> {
  if (!tokenShape.test(token)) return undefined
  const digest = sessionDigest(plane, token)
  const session = await plane.store.findOperatorSession(digest)
  if (session === undefined) return undefined
  const nowMs = Math.floor(plane.clock.nowMs())
  if (nowMs >= session.expiresAtMs || nowMs >= session.lastSeenAtMs + operatorIdleMs) {
    await plane.store.removeOperatorSession(session.id)
    return undefined
  }
  const operator = await plane.store.findOperator(session.operatorId)
  if (operator?.state !== 'active') return undefined
  if (nowMs - session.lastSeenAtMs >= touchEveryMs) await plane.store.touchOperatorSession(digest, nowMs)
  return { session, operator }
}

/** Whether the operator confirmed their identity recently enough. */
export function isConfirmed({ confirmedAtMs }: OperatorSession, nowMs: number): boolean {
  return nowMs < confirmedAtMs + confirmedForMs
}

/** Records a confirmation of identity; false if the session ended meanwhile. */
export function confirmOperatorSession(plane: OperatorIdentity, session: OperatorSession): Promise<boolean> {
  const { id, operatorId } = session
  const record = auditRecord(
    { ...plane, actor: { kind: 'operator', operatorId } },
    { type: 'operator.stepped_up', operatorId },
  )
  return plane.store.confirmOperatorSession(id, record.atMs, record)
}

export function endOperatorSession(plane: OperatorIdentity, { id }: OperatorSession): Promise<void> {
  return plane.store.removeOperatorSession(id)
}

/** A different purpose than for account sessions: neither kind of token can be used as the other. */
function sessionDigest(plane: OperatorIdentity, token: string): string {
  return tokenDigest('operator session', token, plane.pepper)
}
