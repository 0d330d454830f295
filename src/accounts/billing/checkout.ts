import { randomBase62 } from '../../domain/ids.ts'
import { AccountsError } from '../refusals.ts'
import type { BillingPlane } from './billing-plane.ts'
import { refresh } from './refresh.ts'

/** Whoever leaves a checkout and is not heard of is looked at after this long. */
const checkAfterCheckoutMs = 15 * 60_000
const idempotencyCharacters = 24

/** Where a browser is sent to buy or change a plan, and where it comes back to. */
export interface CheckoutPages {
  readonly returnUrl: string
  readonly cancelUrl: string
}

/** A page of whoever takes the money. `portal`: the account subscribes already and changes its plan there. */
export interface PaymentPage {
  readonly kind: 'checkout' | 'portal'
  readonly url: string
}

/**
 * Opens the page to buy a plan. Who subscribes already gets the portal instead, and pages opened before are closed: no
 * account can pay for two plans. @throws AccountsError `account_unknown`, `plan_not_sold`; BillingFailure
 */
export async function openCheckout(
  plane: BillingPlane,
  accountId: string,
  planId: string,
  { returnUrl, cancelUrl }: CheckoutPages,
): Promise<PaymentPage> {
  const offers = await plane.billing.offers()
  if (!offers.some((offer) => offer.planId === planId)) throw new AccountsError('plan_not_sold')
  const customerId = await customerOf(plane, accountId)
  await refresh(plane, accountId)
  const record = await plane.store.findBilling(accountId)
  const status = record?.subscription?.status
  if (status !== undefined && status !== 'canceled' && status !== 'incomplete_expired')
    return { kind: 'portal', url: await plane.billing.openPortal(customerId, returnUrl) }
  await plane.billing.closeCheckouts(customerId)
  const idempotencyKey = `checkout-${randomBase62(idempotencyCharacters, plane.random)}`
  const draft = { accountId, customerId, planId, idempotencyKey, returnUrl, cancelUrl }
  const url = await plane.billing.openCheckout(draft)
  await plane.store.hastenCheck(accountId, Math.floor(plane.clock.nowMs()) + checkAfterCheckoutMs)
  return { kind: 'checkout', url }
}

/** Opens the portal: card, invoices, another plan, cancelling. @throws AccountsError `not_subscribed`; BillingFailure */
export async function openPortal(plane: BillingPlane, accountId: string, returnUrl: string): Promise<PaymentPage> {
  const record = await plane.store.findBilling(accountId)
  if (record === undefined || record.customerId === null) throw new AccountsError('not_subscribed')
  return { kind: 'portal', url: await plane.billing.openPortal(record.customerId, returnUrl) }
}

/**
 * Gives an account up: whatever it subscribes is cancelled at once, or, where that cannot be done now, by the checks.
 * Call it when the account is deleted, before or after. @throws BillingFailure where it is left to the checks
 */
export async function closeBilling(plane: BillingPlane, accountId: string): Promise<void> {
  if (await plane.store.beginClosing(accountId, Math.floor(plane.clock.nowMs()))) await refresh(plane, accountId)
}

async function customerOf(plane: BillingPlane, accountId: string): Promise<string> {
  const account = await plane.accounts.findAccount(accountId)
  if (account === undefined) throw new AccountsError('account_unknown')
  const record = await plane.store.findBilling(accountId)
  if (record?.closingSinceMs != null) throw new AccountsError('account_unknown')
  if (record?.customerId != null) return record.customerId
  const customerId = await plane.billing.createCustomer(accountId, account.name)
  const checkAtMs = Math.floor(plane.clock.nowMs()) + checkAfterCheckoutMs
  return plane.store.linkCustomer(accountId, customerId, checkAtMs)
}
