import type { WebhookDeps } from '../../accounts/alerts/webhooks.ts'
import type { BudgetDeps } from '../../accounts/budgets.ts'
import type { AccountsDeps } from '../../accounts/control-plane.ts'
import type { OperatorsDeps } from '../../accounts/operators/operators.ts'
import type { IdentityStore } from '../../accounts/ports.ts'
import { actorOf, operatorActor } from './actor.ts'
import type { AccountVisit, OperatorVisit } from './visit.ts'

/** The control plane with the visitor as the actor. */
export function accountsDepsFor(visit: AccountVisit): AccountsDeps {
  return { ...visit.deps.control, actor: actorOf(visit) }
}

/** The same for budgets. */
export function budgetDepsFor(visit: AccountVisit): BudgetDeps {
  return { ...visit.deps.budgets, actor: actorOf(visit) }
}

/** The same for webhooks. */
export function webhookDepsFor(visit: AccountVisit): WebhookDeps {
  return { ...visit.deps.webhooks, actor: actorOf(visit) }
}

/** The same for the identity store. */
export function identityDepsFor(visit: AccountVisit): AccountsDeps<IdentityStore> {
  return { ...visit.deps.identity, actor: actorOf(visit) }
}

/** The control plane with an operator as the actor. */
export function operatorAccountsDepsFor(visit: OperatorVisit): AccountsDeps {
  return { ...visit.deps.control, actor: operatorActor(visit) }
}

/** The same for budgets. */
export function operatorBudgetDepsFor(visit: OperatorVisit): BudgetDeps {
  return { ...visit.deps.budgets, actor: operatorActor(visit) }
}

/** The same for the operators. */
export function operatorsDepsFor(visit: OperatorVisit): OperatorsDeps {
  return { ...visit.deps.operators, actor: operatorActor(visit) }
}
