import type { ControlPlane } from '../accounts/control-plane.ts'
import type { IdentityStore } from '../accounts/ports.ts'
import type { OperatorsPlane } from '../accounts/operators.ts'
import { actorOf, operatorActor } from './actor.ts'
import type { AccountVisit, OperatorVisit } from './visit.ts'

/** The control plane with the visitor as the actor. */
export function controlOf(visit: AccountVisit): ControlPlane {
  return { ...visit.parts.control, actor: actorOf(visit) }
}

/** The same for the identity store. */
export function identityOf(visit: AccountVisit): ControlPlane<IdentityStore> {
  return { ...visit.parts.identity, actor: actorOf(visit) }
}

/** The control plane with an operator as the actor. */
export function operatorControlOf(visit: OperatorVisit): ControlPlane {
  return { ...visit.parts.control, actor: operatorActor(visit) }
}

/** The same for the operators. */
export function operatorsOf(visit: OperatorVisit): OperatorsPlane {
  return { ...visit.parts.operators, actor: operatorActor(visit) }
}
