import type { ControlPlane } from '../accounts/control-plane.ts'
import type { IdentityStore } from '../accounts/ports.ts'
import { actorOf } from './actor.ts'
import type { AccountVisit } from './visit.ts'

/** The control plane in the name of whoever visits. */
export function controlOf(visit: AccountVisit): ControlPlane {
  return { ...visit.parts.control, actor: actorOf(visit) }
}

/** The same for what decides who may sign in. */
export function identityOf(visit: AccountVisit): ControlPlane<IdentityStore> {
  return { ...visit.parts.identity, actor: actorOf(visit) }
}
