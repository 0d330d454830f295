import type { Offer, Price, Subscription, UpgradeRequest } from '../../domain/billing.ts'
import type { Plan } from '../../domain/plans.ts'
import { AccountsError } from '../accounts-error.ts'
import type { PlansDeps } from './billing-deps.ts'
import { graceEndsAtMs } from './entitlement.ts'

/** Upgrade requests shown to the account that made them. */
const shownRequests = 5

/** An account's plan and billing status, for its billing page. Reading it makes no request to Stripe. */
export interface BillingOverview {
  /** The plan in force now (contract 5.13). */
  readonly plan: Plan | undefined
  /** Whether the plan comes from the subscription rather than from the operator. */
  readonly isPaid: boolean
  readonly subscription: Subscription | null
  /** When the next invoice is due and its price; null if there is none. */
  readonly nextInvoice: { readonly atMs: number; readonly price: Price | null } | null
  /**
   * A pending change: the next plan and when it starts. If the subscription ends, `planId` is the plan of accounts
   * without one.
   */
  readonly pendingChange: { readonly planId: string | null; readonly atMs: number } | null
  /** An unpaid invoice and when the plan will be lost. Null if nothing is due. */
  readonly paymentDue: { readonly sinceMs: number; readonly planEndsAtMs: number } | null
  /** When the subscription was last read. */
  readonly readAtMs: number | null
}

/** The effect of changing to a plan, for the upgrade page. */
export interface PlanChange {
  readonly from: Plan | undefined
  readonly to: Plan
  readonly direction: 'upgrade' | 'downgrade' | 'same'
  /** Null: immediately, and the rest of the paid period is credited. Otherwise the end of the paid period. */
  readonly takesEffectAtMs: number | null
  readonly price: Price | null
}

/** An account's plan and billing status. @throws AccountsError `account_unknown` */
export async function describeBilling(deps: PlansDeps, accountId: string): Promise<BillingOverview> {
  const account = await deps.accounts.findAccount(accountId)
  if (account === undefined) throw new AccountsError('account_unknown')
  const record = await deps.store.findBilling(accountId)
  const subscription = record?.subscription ?? null
  const plan = planOf(deps, account.planId)
  const isPaid = record !== undefined && record.grantedPlanId !== null && record.grantedPlanId === account.planId
  return {
    plan,
    isPaid,
    subscription,
    nextInvoice: nextInvoiceOf(subscription),
    pendingChange: pendingChangeOf(subscription, deps.defaultPlan),
    paymentDue: dueOf(subscription, deps.graceMs),
    readAtMs: record?.readAtMs ?? null,
  }
}

/** The effect of changing an account's plan. @throws AccountsError `account_unknown`, `plan_unknown` */
export async function describeChange(
  deps: PlansDeps,
  accountId: string,
  planId: string,
  offers: readonly Offer[] = [],
): Promise<PlanChange> {
  const account = await deps.accounts.findAccount(accountId)
  if (account === undefined) throw new AccountsError('account_unknown')
  const to = planOf(deps, planId)
  if (to === undefined) throw new AccountsError('plan_unknown')
  const rank = deps.plans.indexOf(to) - deps.plans.findIndex(({ id }) => id === account.planId)
  const record = await deps.store.findBilling(accountId)
  const paidUntilMs = record?.grantedPlanId == null ? null : (record.subscription?.periodEndsAtMs ?? null)
  return {
    from: planOf(deps, account.planId),
    to,
    direction: rank > 0 ? 'upgrade' : rank < 0 ? 'downgrade' : 'same',
    takesEffectAtMs: rank < 0 ? paidUntilMs : null,
    price: offers.find((offer) => offer.planId === planId)?.price ?? null,
  }
}

/** An account's newest upgrade requests, including the open one if there is one. */
export function listOwnRequests(deps: PlansDeps, accountId: string): Promise<readonly UpgradeRequest[]> {
  return deps.store.listUpgradeRequests({ accountId, limit: shownRequests })
}

function planOf(deps: PlansDeps, planId: string): Plan | undefined {
  return deps.plans.find(({ id }) => id === planId)
}

function nextInvoiceOf(subscription: Subscription | null): BillingOverview['nextInvoice'] {
  if (subscription === null || !['active', 'trialing', 'past_due'].includes(subscription.status)) return null
  const { endsAtMs, periodEndsAtMs, next, price } = subscription
  if (endsAtMs !== null && endsAtMs <= periodEndsAtMs) return null
  return { atMs: periodEndsAtMs, price: next === null ? price : null }
}

function pendingChangeOf(subscription: Subscription | null, defaultPlan: string): BillingOverview['pendingChange'] {
  if (subscription === null) return null
  if (subscription.endsAtMs !== null) return { planId: defaultPlan, atMs: subscription.endsAtMs }
  return subscription.next
}

function dueOf(subscription: Subscription | null, graceMs: number): BillingOverview['paymentDue'] {
  if (subscription?.status !== 'past_due' || subscription.dueSinceMs === null) return null
  return { sinceMs: subscription.dueSinceMs, planEndsAtMs: graceEndsAtMs(subscription, graceMs) }
}
