import type { Actor } from '../../domain/audit.ts'
import type { AccountVisit, OperatorVisit } from './visit.ts'

/** The actor for the audit log. */
export function actorOf({ signedIn: { session, account } }: AccountVisit): Actor {
  return { kind: 'session', sessionId: session.id, accountId: account.id }
}

/** The same for the console. */
export function operatorActor({ operator }: OperatorVisit): Extract<Actor, { kind: 'operator' }> {
  return { kind: 'operator', operatorId: operator.id }
}
