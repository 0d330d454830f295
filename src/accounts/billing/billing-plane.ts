import type { Actor } from '../../domain/audit.ts'
import type { Clock } from '../../domain/clock.ts'
import type { EventLog } from '../../domain/events.ts'
import type { Plan } from '../../domain/plans.ts'
import type { RandomBytes } from '../../domain/random.ts'
import type { AccountStore } from '../ports.ts'
import type { Billing, BillingStore } from './ports.ts'
import type { HandleWebhook } from './webhook.ts'

/** What plans and their payment are decided with. */
export interface PlansPlane {
  readonly accounts: Pick<AccountStore, 'findAccount'>
  readonly store: BillingStore
  readonly clock: Clock
  readonly random: RandomBytes
  /** From the least to the most. */
  readonly plans: readonly Plan[]
  /** The plan of accounts to whom nothing is granted. */
  readonly defaultPlan: string
  /** How long an unpaid invoice is waited for before the plan is lost. */
  readonly graceMs: number
}

/** The same for whoever asks for a plan or decides about it. */
export interface UpgradesPlane extends PlansPlane {
  readonly actor: Actor
}

/** The same where plans are sold. */
export interface BillingPlane extends PlansPlane {
  readonly billing: Billing
  readonly log: EventLog
}

/** How accounts come to another plan: by asking an operator, or, where plans are sold, by paying. */
export interface PlanSales {
  readonly plane: PlansPlane
  /** Undefined where an operator decides. */
  readonly sold: { readonly plane: BillingPlane; readonly handleWebhook: HandleWebhook } | undefined
}
