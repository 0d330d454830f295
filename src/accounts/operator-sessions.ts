import { idMinter } from '../domain/ids.ts'
import type { SignInMethod } from '../domain/identity.ts'
import type { Operator, OperatorSession } from '../domain/operators.ts'
import type { Secret } from '../domain/secret.ts'
import { mintToken, tokenDigest } from '../domain/tokens.ts'
import { recordOf, type ControlPlane } from './control-plane.ts'
import type { OperatorStore } from './operator-ports.ts'

const minuteMs = 60_000
/** A session of the console ends when it was not used for so long (contract 24.4). */
const operatorIdleMs = 30 * minuteMs
/** And so long after signing in, however much it is used (contract 24.4). */
export const operatorLifeMs = 12 * 60 * minuteMs
/** How long a proof of who sits there is enough for what does harm in the wrong hands (contract 24.5). */
const confirmedForMs = 10 * minuteMs
/** Its last use is written down this often at most. */
const touchEveryMs = minuteMs
/** Sessions of one operator; one more ends the one that was used longest ago (contract 24.4). */
const maxSessionsPerOperator = 20
const tokenShape = /^[A-Za-z0-9_-]{43}$/

/** What the console's sessions work with; the operator whose session it is acts. */
export type OperatorIdentity = Omit<ControlPlane<OperatorStore>, 'actor'>

/** Opens a session, with a new token each time; undefined where the operator was removed meanwhile. */
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
  const record = recordOf(
    { ...plane, actor: { kind: 'operator', operatorId } },
    { type: 'operator.signed_in', operatorId },
  )
  const digest = sessionDigest(plane, token.reveal())
  const isAdded = await plane.store.addOperatorSession(session, digest, maxSessionsPerOperator, record)
  return isAdded ? { token, session } : undefined
}

/** The session of a token and its operator; undefined where it is none, has ended, or its operator was removed. */
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

/** Whether it was proven lately enough who sits there. */
export function isConfirmed({ confirmedAtMs }: OperatorSession, nowMs: number): boolean {
  return nowMs < confirmedAtMs + confirmedForMs
}

/** Writes down that it was just proven who sits there; false where the session ended meanwhile. */
export function confirmOperatorSession(plane: OperatorIdentity, session: OperatorSession): Promise<boolean> {
  const { id, operatorId } = session
  const record = recordOf(
    { ...plane, actor: { kind: 'operator', operatorId } },
    { type: 'operator.stepped_up', operatorId },
  )
  return plane.store.confirmOperatorSession(id, record.atMs, record)
}

/** Ends a session. */
export function endOperatorSession(plane: OperatorIdentity, { id }: OperatorSession): Promise<void> {
  return plane.store.removeOperatorSession(id)
}

/** Another word than for accounts' sessions: neither token is ever found among the others. */
function sessionDigest(plane: OperatorIdentity, token: string): string {
  return tokenDigest('operator session', token, plane.pepper)
}
