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
  deps: OperatorIdentity,
  operatorId: string,
  { method, agent }: { readonly method: SignInMethod; readonly agent: string },
): Promise<{ readonly token: Secret; readonly session: OperatorSession } | undefined> {
  const token = mintToken(deps.random)
  const nowMs = Math.floor(deps.clock.nowMs())
  const session: OperatorSession = {
    id: idMinter('ops_', () => nowMs, deps.random)(),
    operatorId,
    method,
    agent,
    createdAtMs: nowMs,
    lastSeenAtMs: nowMs,
    expiresAtMs: nowMs + operatorLifeMs,
    confirmedAtMs: nowMs,
  }
  const record = auditRecord(
    { ...deps, actor: { kind: 'operator', operatorId } },
    { type: 'operator.signed_in', operatorId },
  )
  const digest = sessionDigest(deps, token.reveal())
  const isAdded = await deps.store.addOperatorSession(session, digest, maxSessionsPerOperator, record)
  return isAdded ? { token, session } : undefined
}

/** The session and operator of a token; undefined if it is unknown, has ended, or its operator was removed. */
export async function findOperatorSession(
  deps: OperatorIdentity,
  token: string,
): Promise<{ readonly session: OperatorSession; readonly operator: Operator } | undefined> {
  if (!tokenShape.test(token)) return undefined
  const digest = sessionDigest(deps, token)
  const session = await deps.store.findOperatorSession(digest)
  if (session === undefined) return undefined
  const nowMs = Math.floor(deps.clock.nowMs())
  if (nowMs >= session.expiresAtMs || nowMs >= session.lastSeenAtMs + operatorIdleMs) {
    await deps.store.removeOperatorSession(session.id)
    return undefined
  }
  const operator = await deps.store.findOperator(session.operatorId)
  if (operator?.state !== 'active') return undefined
  if (nowMs - session.lastSeenAtMs >= touchEveryMs) await deps.store.touchOperatorSession(digest, nowMs)
  return { session, operator }
}

/** Whether the operator confirmed their identity recently enough. */
export function isConfirmed({ confirmedAtMs }: OperatorSession, nowMs: number): boolean {
  return nowMs < confirmedAtMs + confirmedForMs
}

/** Records a confirmation of identity; false if the session ended meanwhile. */
export function confirmOperatorSession(deps: OperatorIdentity, session: OperatorSession): Promise<boolean> {
  const { id, operatorId } = session
  const record = auditRecord(
    { ...deps, actor: { kind: 'operator', operatorId } },
    { type: 'operator.stepped_up', operatorId },
  )
  return deps.store.confirmOperatorSession(id, record.atMs, record)
}

export function endOperatorSession(deps: OperatorIdentity, { id }: OperatorSession): Promise<void> {
  return deps.store.removeOperatorSession(id)
}

/** A different purpose than for account sessions: neither kind of token can be used as the other. */
function sessionDigest(deps: OperatorIdentity, token: string): string {
  return tokenDigest('operator session', token, deps.pepper)
}
