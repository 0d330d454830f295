import type { Actor } from '../../domain/audit.ts'
import type { EventLog } from '../../domain/events.ts'
import type { Plan } from '../../domain/plans.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { RandomBytes } from '../../runtime/random.ts'
import type { AccountStore } from '../ports.ts'
import type { Billing, BillingStore, HandleWebhook } from './ports.ts'

/** What code about plans and their payment needs. */
export interface PlansDeps {
  readonly accounts: Pick<AccountStore, 'findAccount'>
  readonly store: BillingStore
  readonly clock: Clock
  readonly random: RandomBytes
  /** Smallest plan first. */
  readonly plans: readonly Plan[]
  /** The plan of accounts without a subscription or a granted upgrade. */
  readonly defaultPlan: string
  /** How long an invoice may stay unpaid before the account loses the plan. */
  readonly graceMs: number
}

/** The same for plan upgrade requests and decisions about them. */
export interface UpgradesDeps extends PlansDeps {
  readonly actor: Actor
}

/** The same where plans are sold. */
export interface BillingDeps extends PlansDeps {
  readonly billing: Billing
  readonly log: EventLog
}

/** How accounts change plans: an operator decides, or, if plans are sold, the account pays (contract 22.1). */
export interface PlanSales {
  readonly plansDeps: PlansDeps
  /** Undefined if an operator decides. */
  readonly sold: { readonly plansDeps: BillingDeps; readonly handleWebhook: HandleWebhook } | undefined
}
