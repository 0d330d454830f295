import type { BillingPlane } from './billing-plane.ts'
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
 * BillingFailure if nothing can be read; then nothing changes
 */
export async function refresh(plane: BillingPlane, accountId: string, eventId?: string): Promise<RefreshOutcome> {
  const record = await plane.store.findBilling(accountId)
  const customerId = record?.customerId ?? null
  if (record === undefined || customerId === null) return 'unlinked'
  if (record.closingSinceMs !== null || (await plane.accounts.findAccount(accountId)) === undefined)
    return close(plane, record, customerId)
  const read = await plane.store.takeRead(accountId)
  const subscriptions = await plane.billing.subscriptionsOf(customerId)
  const nowMs = Math.floor(plane.clock.nowMs())
  const entitlement = entitlementOf(subscriptions, { plans: plane.plans, graceMs: plane.graceMs, nowMs })
  logAnomalies(plane, accountId, entitlement)
  const { grant, subscription } = entitlement
  const outcome = await plane.store.applyRead({
    accountId,
    read,
    subscription,
    grant,
    planWithoutGrant: plane.defaultPlan,
    nowMs,
    checkAtMs: nextCheckAtMs(entitlement, nowMs),
    eventId,
  })
  if (outcome === 'changed')
    plane.log({ event: 'subscription_changed_plan', accountId, planId: grant ?? plane.defaultPlan })
  return outcome
}

/**
 * Cancels the remaining subscriptions of a closed account; once none has been left for long enough, its record is
 * deleted.
 */
async function close(plane: BillingPlane, record: BillingRecord, customerId: string): Promise<RefreshOutcome> {
  const { accountId } = record
  const nowMs = Math.floor(plane.clock.nowMs())
  const sinceMs = record.closingSinceMs ?? nowMs
  if (record.closingSinceMs === null) await plane.store.beginClosing(accountId, nowMs)
  await plane.billing.closeCheckouts(customerId)
  const subscriptions = await plane.billing.subscriptionsOf(customerId)
  for (const { id } of subscriptions) await plane.billing.cancel(id)
  if (subscriptions.length === 0 && nowMs - sinceMs >= closingForMs) await plane.store.removeBilling(accountId)
  else await plane.store.postponeCheck(accountId, nowMs + checkEveryMs)
  return 'closed'
}

function nextCheckAtMs({ subscription, changesAtMs }: Entitlement, nowMs: number): number {
  const byTime = nowMs + (subscription === null ? checkIdleEveryMs : checkEveryMs)
  return changesAtMs === undefined ? byTime : Math.min(byTime, changesAtMs + afterMomentMs)
}

function logAnomalies(plane: BillingPlane, accountId: string, { grant, standing }: Entitlement): void {
  if (grant === undefined) plane.log({ event: 'billing_odd', accountId, reason: 'a price that no plan names' })
  if (standing > 1) plane.log({ event: 'billing_odd', accountId, reason: 'more than one subscription' })
}
