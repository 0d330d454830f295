import { randomBase62 } from '../../domain/ids.ts'
import { AccountsError } from '../refusals.ts'
import type { BillingPlane } from './billing-plane.ts'
import { refresh } from './refresh.ts'

/** When a customer is checked who opened a checkout and did not return. */
const checkAfterCheckoutMs = 15 * 60_000
const idempotencyCharacters = 24

/** The provider's page for buying or changing a plan, and the URLs it returns to. */
export interface CheckoutPages {
  readonly returnUrl: string
  readonly cancelUrl: string
}

/** A page of the payment provider. `portal`: the account already has a subscription and changes its plan there. */
export interface PaymentPage {
  readonly kind: 'checkout' | 'portal'
  readonly url: string
}

/**
 * Opens a checkout for a plan. A subscribed account gets the portal instead, and earlier checkouts are closed: no
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

/**
 * Opens the portal: card, invoices, plan change, cancellation. @throws AccountsError `not_subscribed`; BillingFailure
 */
export async function openPortal(plane: BillingPlane, accountId: string, returnUrl: string): Promise<PaymentPage> {
  const record = await plane.store.findBilling(accountId)
  if (record === undefined || record.customerId === null) throw new AccountsError('not_subscribed')
  return { kind: 'portal', url: await plane.billing.openPortal(record.customerId, returnUrl) }
}

/**
 * Closes an account's billing: cancels its subscriptions now or, if that fails, in a later background check. Call it
 * when the account is deleted, before or after. @throws BillingFailure if the cancellation is left to the background
 * checks
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
