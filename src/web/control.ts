import type { ControlPlane } from '../accounts/control-plane.ts'
import type { IdentityStore } from '../accounts/ports.ts'
import type { Actor } from '../domain/audit.ts'
import type { AccountVisit } from './visit.ts'

/** The control plane in the name of whoever visits. */
export function controlOf({ parts, signedIn }: AccountVisit): ControlPlane {
  return { ...parts.control, actor: actorOf(signedIn) }
}

/** The same for what decides who may sign in. */
export function identityOf({ parts, signedIn }: AccountVisit): ControlPlane<IdentityStore> {
  return { ...parts.identity, actor: actorOf(signedIn) }
}

function actorOf({ session }: AccountVisit['signedIn']): Actor {
  return { kind: 'session', sessionId: session.id, accountId: session.accountId }
}
