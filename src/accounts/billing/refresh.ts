import type { BillingPlane } from './billing-plane.ts'
import { entitlementOf, type Entitlement } from './entitlement.ts'
import type { BillingRecord, ReadOutcome } from './ports.ts'

/** A subscription is read again after this long even if nothing was heard: then at the latest a lost event is made up for (contract 22.3). */
export const checkEveryMs = 3_600_000
/** The same for a customer without one, who left a checkout (contract 22.3). */
export const checkIdleEveryMs = 6 * 3_600_000
/** Changes that come by time are read this long after their moment, when they have certainly happened (contract 22.3). */
const afterMomentMs = 60_000
/** A given-up account is looked at for this long: no page that it opened can be paid any more then. */
const closingForMs = 25 * 3_600_000

/** What a refresh did. `unlinked`: the account was never a customer. `closed`: it is given up and nothing is subscribed. */
export type RefreshOutcome = ReadOutcome | 'unlinked' | 'closed'

/**
 * Reads what a customer's subscriptions are now and puts the account on the plan that they grant. Any number of these
 * may run at once, here and on other nodes, and end in any order: each takes its number before it reads, and a read
 * never overwrites one with a higher number, which began later. Whatever happened before the last of them began is
 * therefore applied. @throws BillingFailure where nothing can be read; then everything stays as it is
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
  tellOddities(plane, accountId, entitlement)
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

/** Cancels whatever a given-up account still subscribes; once nothing is left for long enough, it is forgotten. */
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

function tellOddities(plane: BillingPlane, accountId: string, { grant, standing }: Entitlement): void {
  if (grant === undefined) plane.log({ event: 'billing_odd', accountId, reason: 'a price that no plan names' })
  if (standing > 1) plane.log({ event: 'billing_odd', accountId, reason: 'more than one subscription' })
}
