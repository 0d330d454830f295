import { randomBase62 } from '../../runtime/ids.ts'
import { AccountsError } from '../accounts-error.ts'
import type { BillingDeps } from './billing-deps.ts'
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
 * account can pay for two plans (contract 22.9). @throws AccountsError `account_unknown`, `plan_not_sold`;
 * BillingFailure
 */
export async function openCheckout(
  deps: BillingDeps,
  accountId: string,
  planId: string,
  { returnUrl, cancelUrl }: CheckoutPages,
): Promise<PaymentPage> {
  const offers = await deps.billing.offers()
  if (!offers.some((offer) => offer.planId === planId)) throw new AccountsError('plan_not_sold')
  const customerId = await customerOf(deps, accountId)
  await refresh(deps, accountId)
  const record = await deps.store.findBilling(accountId)
  const status = record?.subscription?.status
  if (status !== undefined && status !== 'canceled' && status !== 'incomplete_expired')
    return { kind: 'portal', url: await deps.billing.openPortal(customerId, returnUrl) }
  await deps.billing.closeCheckouts(customerId)
  const idempotencyKey = `checkout-${randomBase62(idempotencyCharacters, deps.random)}`
  const draft = { accountId, customerId, planId, idempotencyKey, returnUrl, cancelUrl }
  const url = await deps.billing.openCheckout(draft)
  await deps.store.scheduleCheckNow(accountId, Math.floor(deps.clock.nowMs()) + checkAfterCheckoutMs)
  return { kind: 'checkout', url }
}

/**
 * Opens the portal: card, invoices, plan change, cancellation. @throws AccountsError `not_subscribed`; BillingFailure
 */
export async function openPortal(deps: BillingDeps, accountId: string, returnUrl: string): Promise<PaymentPage> {
  const record = await deps.store.findBilling(accountId)
  if (record === undefined || record.customerId === null) throw new AccountsError('not_subscribed')
  return { kind: 'portal', url: await deps.billing.openPortal(record.customerId, returnUrl) }
}

/**
 * Closes an account's billing: cancels its subscriptions now or, if that fails, in a later background check. Call it
 * when the account is deleted, before or after. @throws BillingFailure if the cancellation is left to the background
 * checks
 */
export async function closeBilling(deps: BillingDeps, accountId: string): Promise<void> {
  if (await deps.store.beginClosing(accountId, Math.floor(deps.clock.nowMs()))) await refresh(deps, accountId)
}

async function customerOf(deps: BillingDeps, accountId: string): Promise<string> {
  const account = await deps.accounts.findAccount(accountId)
  if (account === undefined) throw new AccountsError('account_unknown')
  const record = await deps.store.findBilling(accountId)
  if (record?.closingSinceMs != null) throw new AccountsError('account_unknown')
  if (record?.customerId != null) return record.customerId
  const customerId = await deps.billing.createCustomer(accountId, account.name)
  const checkAtMs = Math.floor(deps.clock.nowMs()) + checkAfterCheckoutMs
  return deps.store.linkCustomer(accountId, customerId, checkAtMs)
}
