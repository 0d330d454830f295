import type { Actor } from '../domain/audit.ts'
import type { AccountVisit } from './visit.ts'

/** Who changes something on a page, for the audit log. */
export function actorOf({ signedIn: { session, account } }: AccountVisit): Actor {
  return { kind: 'session', sessionId: session.id, accountId: account.id }
}
