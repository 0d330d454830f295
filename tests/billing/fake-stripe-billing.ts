import type { Stripe } from 'stripe'
import type { Billing, BillingHint, CheckoutDraft } from '../../src/accounts/billing/ports.ts'
import { readSubscription } from '../../src/billing/read-subscription.ts'
import type { Offer, Subscription } from '../../src/domain/billing.ts'
import { FakeStripe, type FakeEvent } from '../../src/simulation/stripe/fake-stripe.ts'
import type { FakePrice } from '../../src/simulation/stripe/state.ts'
import { writeSubscription } from '../../src/simulation/stripe/write-json.ts'

export const doublePrices: readonly FakePrice[] = [
  { id: 'price_pro', productId: 'prod_pro', name: 'Pro', minorUnits: 2000 },
  { id: 'price_max', productId: 'prod_max', name: 'Max', minorUnits: 10_000 },
]

/** The plan of each price. */
const planOfPrice = (priceId: string): string | null => /^price_(pro|max)$/.exec(priceId)?.[1] ?? null

/**
 * The billing port over the fake Stripe without HTTP, for many histories. Each read waits for `waits` before it reads
 * and again before it returns, so that an older read can return after a newer one. It parses data like the real adapter.
 */
export class DoubleBilling implements Billing {
  readonly isSimulated = true
  readonly pageOrigins: readonly string[] = []
  readonly fake: FakeStripe
  readonly #waits: () => Promise<void>

  constructor(fake: FakeStripe, waits: () => Promise<void>) {
    this.fake = fake
    this.#waits = waits
  }

  async subscriptionsOf(customerId: string): Promise<readonly Subscription[]> {
    await this.#waits()
    const read = this.fake
      .subscriptionsOf(customerId)
      .filter(({ status }) => status !== 'canceled' && status !== 'incomplete_expired')
      .map((subscription) => {
        const due = this.fake.openInvoices(subscription.id).map(({ createdAtMs }) => createdAtMs)
        const dueSinceMs = subscription.status === 'past_due' && due.length > 0 ? Math.min(...due) : null
        const json = writeSubscription(this.fake, subscription) as unknown as Stripe.Subscription
        return readSubscription(json, planOfPrice, dueSinceMs)
      })
    await this.#waits()
    return read
  }

  /** Receives an event, whose body is the event itself. */
  readWebhook(rawBody: Uint8Array): BillingHint {
    const { id, about } = JSON.parse(Buffer.from(rawBody).toString()) as FakeEvent
    return { eventId: id, customerId: about.customerId }
  }

  cancel(subscriptionId: string): Promise<void> {
    const subscription = this.fake.state.subscriptions.find(({ id }) => id === subscriptionId)
    if (subscription !== undefined) this.fake.cancelNow(subscription)
    return Promise.resolve()
  }

  closeCheckouts(customerId: string): Promise<void> {
    for (const checkout of this.fake.state.checkouts)
      if (checkout.customerId === customerId) this.fake.expireCheckout(checkout)
    return Promise.resolve()
  }

  createCustomer(accountId: string, name: string): Promise<string> {
    const known = this.fake.state.customers.find(({ metadata }) => metadata['account'] === accountId)
    return Promise.resolve((known ?? this.fake.createCustomer(name, { account: accountId })).id)
  }

  openCheckout({ customerId, planId, accountId, returnUrl, cancelUrl }: CheckoutDraft): Promise<string> {
    const pages = { successUrl: returnUrl, cancelUrl, reference: accountId }
    const checkout = this.fake.openCheckout({ customerId, priceId: `price_${planId}`, ...pages })
    return Promise.resolve(`double:${checkout.id}`)
  }

  openPortal(customerId: string, returnUrl: string): Promise<string> {
    return Promise.resolve(`double:${this.fake.openPortal(customerId, returnUrl).id}`)
  }

  offers(): Promise<readonly Offer[]> {
    return Promise.resolve(['pro', 'max'].map((planId) => ({ planId, price: null })))
  }
}
