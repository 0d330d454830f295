import type { BillingDeps } from './billing-deps.ts'
import { entitlementOf, type Entitlement } from './entitlement.ts'
import type { BillingRecord, ReadOutcome } from './ports.ts'

/**
 * A subscription is read again after this long even without an event, which makes up for lost webhooks (contract 22.3).
 */
export const checkEveryMs = 3_600_000
/** The same for a customer without a subscription, such as one who abandoned a checkout (contract 22.3). */
export const checkIdleEveryMs = 6 * 3_600_000
/** Scheduled changes are read this long after their time, when they have certainly taken effect (contract 22.3). */
const afterMomentMs = 60_000
/** How long a closed account is still checked: after that, none of its checkouts can be paid any more. */
const closingForMs = 25 * 3_600_000

/**
 * The result of a refresh. `unlinked`: the account never was a customer. `closed`: the account is closed and has no
 * subscription left.
 */
export type RefreshOutcome = ReadOutcome | 'unlinked' | 'closed'

/**
 * Reads a customer's current subscriptions and moves the account to the plan they grant. Refreshes may run
 * concurrently, on any node, and finish in any order: each takes a number before it reads, and a read never overwrites
 * one with a higher number, which began later. So every change made before the last read began is applied. @throws
 * BillingFailure if nothing can be read; then nothing changes (contract 22.8)
 */
export async function refresh(deps: BillingDeps, accountId: string, eventId?: string): Promise<RefreshOutcome> {
  const record = await deps.store.findBilling(accountId)
  const customerId = record?.customerId ?? null
  if (record === undefined || customerId === null) return 'unlinked'
  if (record.closingSinceMs !== null || (await deps.accounts.findAccount(accountId)) === undefined)
    return close(deps, record, customerId)
  const read = await deps.store.takeRead(accountId)
  const subscriptions = await deps.billing.subscriptionsOf(customerId)
  const nowMs = Math.floor(deps.clock.nowMs())
  const entitlement = entitlementOf(subscriptions, { plans: deps.plans, graceMs: deps.graceMs, nowMs })
  logAnomalies(deps, accountId, entitlement)
  const { grant, subscription } = entitlement
  const outcome = await deps.store.applyRead({
    accountId,
    read,
    subscription,
    grant,
    planWithoutGrant: deps.defaultPlan,
    nowMs,
    checkAtMs: nextCheckAtMs(entitlement, nowMs),
    eventId,
  })
  if (outcome === 'changed')
    deps.log({ event: 'subscription_changed_plan', accountId, planId: grant ?? deps.defaultPlan })
  return outcome
}

/**
 * Cancels the remaining subscriptions of a closed account; once none has been left for long enough, its record is
 * deleted.
 */
async function close(deps: BillingDeps, record: BillingRecord, customerId: string): Promise<RefreshOutcome> {
  const { accountId } = record
  const nowMs = Math.floor(deps.clock.nowMs())
  const sinceMs = record.closingSinceMs ?? nowMs
  if (record.closingSinceMs === null) await deps.store.beginClosing(accountId, nowMs)
  await deps.billing.closeCheckouts(customerId)
  const subscriptions = await deps.billing.subscriptionsOf(customerId)
  for (const { id } of subscriptions) await deps.billing.cancel(id)
  if (subscriptions.length === 0 && nowMs - sinceMs >= closingForMs) await deps.store.removeBilling(accountId)
  else await deps.store.postponeCheck(accountId, nowMs + checkEveryMs)
  return 'closed'
}

function nextCheckAtMs({ subscription, changesAtMs }: Entitlement, nowMs: number): number {
  const byTime = nowMs + (subscription === null ? checkIdleEveryMs : checkEveryMs)
  return changesAtMs === undefined ? byTime : Math.min(byTime, changesAtMs + afterMomentMs)
}

function logAnomalies(deps: BillingDeps, accountId: string, { grant, standing }: Entitlement): void {
  if (grant === undefined) deps.log({ event: 'billing_odd', accountId, reason: 'a price that no plan names' })
  if (standing > 1) deps.log({ event: 'billing_odd', accountId, reason: 'more than one subscription' })
}
