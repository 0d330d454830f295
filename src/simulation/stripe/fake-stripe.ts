import { dayMs } from '../../runtime/durations.ts'
import { randomBase62 } from '../../runtime/ids.ts'
import type { RandomBytes } from '../../runtime/random.ts'
import { nextMonth } from './calendar.ts'
import {
  emptyState,
  isOver,
  maxKept,
  type FakeCheckout,
  type FakeCustomer,
  type FakeInvoice,
  type FakePortal,
  type FakePrice,
  type FakeStripeState,
  type FakeSubscription,
} from './state.ts'

const idCharacters = 24
/** Long enough for a person, and allowed by Stripe. */
const defaultCheckoutMs = 3_600_000
/** Days after which Stripe retries a failed payment; then it gives up in the way its operator configured. */
const retryAfterDays = [3, 5, 7] as const
const trialMs = 7 * dayMs

/** An event for a webhook. */
export interface FakeEvent {
  readonly id: string
  readonly type: string
  readonly createdAtMs: number
  /** The object it is about, as it was at that time. */
  readonly about: FakeSubscription | FakeInvoice | FakeCheckout
}

export interface FakeStripeOptions {
  readonly prices: readonly FakePrice[]
  readonly random: RandomBytes
  /** What happens to a subscription whose invoice is never paid. */
  readonly whenUnpaid: 'canceled' | 'unpaid' | 'past_due'
  readonly onEvent: (event: FakeEvent) => void
  /** The state of an earlier run, or empty. */
  readonly state: FakeStripeState
}

/**
 * A fake of Stripe's subscriptions: customers, checkouts, renewals, failing cards, and cancellation, with its own
 * clock. It simulates only what the service uses of Stripe; no money moves. Each method is something that a customer,
 * an operator, or time does; the results become events.
 */
export class FakeStripe {
  readonly state: FakeStripeState
  readonly prices: readonly FakePrice[]
  readonly whenUnpaid: FakeStripeOptions['whenUnpaid']
  readonly #random: RandomBytes
  readonly #onEvent: FakeStripeOptions['onEvent']

  constructor({ prices, random, whenUnpaid, onEvent, state }: FakeStripeOptions) {
    this.prices = prices
    this.whenUnpaid = whenUnpaid
    this.#random = random
    this.#onEvent = onEvent
    this.state = state
  }

  createCustomer(name: string, metadata: Readonly<Record<string, string>>): FakeCustomer {
    const customer: FakeCustomer = { id: this.mintId('cus'), name, metadata, cardFails: false }
    keep(this.state.customers, customer)
    return customer
  }

  openCheckout(draft: Omit<FakeCheckout, 'id' | 'status' | 'expiresAtMs'> & { expiresAtMs?: number }): FakeCheckout {
    const expiresAtMs = draft.expiresAtMs ?? this.state.nowMs + defaultCheckoutMs
    const checkout: FakeCheckout = { ...draft, id: this.mintId('cs_test'), status: 'open', expiresAtMs }
    keep(this.state.checkouts, checkout)
    return checkout
  }

  openPortal(customerId: string, returnUrl: string): FakePortal {
    const portal: FakePortal = { id: this.mintId('bps'), customerId, returnUrl }
    keep(this.state.portals, portal)
    return portal
  }

  /** Pays a checkout. If the card fails, nothing happens and the checkout stays open. */
  payCheckout(checkout: FakeCheckout, { trial = false } = {}): FakeSubscription | undefined {
    const customer = this.customer(checkout.customerId)
    if (checkout.status !== 'open' || customer === undefined || (customer.cardFails && !trial)) return undefined
    checkout.status = 'complete'
    const subscription = this.#subscribe(customer, checkout.priceId, trial ? 'trialing' : 'active')
    this.emit('checkout.session.completed', checkout)
    return subscription
  }

  /** Creates a subscription whose first payment is pending: it expires unless paid within a day. */
  subscribeIncomplete(customer: FakeCustomer, priceId: string): FakeSubscription {
    const subscription = this.#subscribe(customer, priceId, 'incomplete')
    this.#bill(subscription, this.amountOf(priceId)).failures = retryAfterDays.length
    return subscription
  }

  expireCheckout(checkout: FakeCheckout): void {
    if (checkout.status !== 'open') return
    checkout.status = 'expired'
    this.emit('checkout.session.expired', checkout)
  }

  /**
   * Changes the price: a higher one applies now, and the difference is invoiced; a lower one applies when the period
   * ends.
   */
  changePrice(subscription: FakeSubscription, priceId: string): void {
    if (!['active', 'trialing'].includes(subscription.status)) return
    const isMore = this.amountOf(priceId) > this.amountOf(subscription.priceId)
    subscription.nextPriceId = isMore || priceId === subscription.priceId ? null : priceId
    if (isMore) {
      const difference = this.amountOf(priceId) - this.amountOf(subscription.priceId)
      subscription.priceId = priceId
      if (subscription.status === 'active') this.invoice(subscription, difference)
    }
    this.emit('customer.subscription.updated', subscription)
  }

  /** Schedules cancellation for the end of the period, or removes the schedule. */
  cancelAtPeriodEnd(subscription: FakeSubscription, isWanted: boolean): void {
    if (isOver(subscription)) return
    subscription.cancelsAtPeriodEnd = isWanted
    if (isWanted) subscription.nextPriceId = null
    this.emit('customer.subscription.updated', subscription)
  }

  /** Cancels a subscription immediately. */
  cancelNow(subscription: FakeSubscription): void {
    if (isOver(subscription)) return
    subscription.status = 'canceled'
    subscription.canceledAtMs = this.state.nowMs
    for (const invoice of this.openInvoices(subscription.id)) invoice.retryAtMs = null
    this.emit('customer.subscription.deleted', subscription)
  }

  /** Makes the customer's card fail from now on, or work again; a working card then pays open invoices. */
  setCard(customer: FakeCustomer, fails: boolean): void {
    customer.cardFails = fails
    if (fails) return
    for (const subscription of this.subscriptionsOf(customer.id)) this.payOpen(subscription)
  }

  /** Pays all open invoices of a subscription that has not ended. */
  payOpen(subscription: FakeSubscription): void {
    if (isOver(subscription)) return
    const open = this.openInvoices(subscription.id)
    for (const invoice of open) this.#markPaid(invoice)
    if (open.length > 0) this.#setStatus(subscription, 'active')
  }

  /** Creates an invoice and tries to collect it. */
  invoice(subscription: FakeSubscription, amount: number): void {
    const invoice = this.#bill(subscription, amount)
    this.collect(subscription, invoice)
  }

  /** Tries to collect an invoice; after the last retry the subscription ends as configured. */
  collect(subscription: FakeSubscription, invoice: FakeInvoice): void {
    if (this.customer(subscription.customerId)?.cardFails !== true) {
      this.#markPaid(invoice)
      if (this.openInvoices(subscription.id).length === 0) this.#setStatus(subscription, 'active')
      return
    }
    const wait = retryAfterDays[invoice.failures]
    invoice.failures += 1
    invoice.retryAtMs = wait === undefined ? null : this.state.nowMs + wait * dayMs
    this.emit('invoice.payment_failed', invoice)
    if (wait !== undefined) this.#setStatus(subscription, subscription.status === 'unpaid' ? 'unpaid' : 'past_due')
    else if (this.whenUnpaid === 'canceled') this.cancelNow(subscription)
    else this.#setStatus(subscription, this.whenUnpaid)
  }

  emit(type: string, about: FakeEvent['about']): void {
    this.#onEvent({ id: this.mintId('evt'), type, createdAtMs: this.state.nowMs, about: { ...about } })
  }

  customer(id: string): FakeCustomer | undefined {
    return this.state.customers.find((customer) => customer.id === id)
  }

  subscriptionsOf(customerId: string): FakeSubscription[] {
    return this.state.subscriptions.filter((subscription) => subscription.customerId === customerId)
  }

  openInvoices(subscriptionId: string): FakeInvoice[] {
    return this.state.invoices.filter((one) => one.subscriptionId === subscriptionId && one.status === 'open')
  }

  amountOf(priceId: string): number {
    return this.prices.find(({ id }) => id === priceId)?.minorUnits ?? 0
  }

  /** Mints an unguessable id that says it is simulated. */
  mintId(prefix: string): string {
    return `${prefix}_simulated${randomBase62(idCharacters, this.#random)}`
  }

  #subscribe(customer: FakeCustomer, priceId: string, status: 'active' | 'trialing' | 'incomplete'): FakeSubscription {
    const { nowMs } = this.state
    const subscription: FakeSubscription = {
      id: this.mintId('sub'),
      customerId: customer.id,
      createdAtMs: nowMs,
      priceId,
      status,
      periodStartsAtMs: nowMs,
      periodEndsAtMs: status === 'trialing' ? nowMs + trialMs : nextMonth(nowMs),
      cancelsAtPeriodEnd: false,
      canceledAtMs: null,
      nextPriceId: null,
    }
    keep(this.state.subscriptions, subscription)
    this.emit('customer.subscription.created', subscription)
    if (status === 'active') this.invoice(subscription, this.amountOf(priceId))
    return subscription
  }

  #bill(subscription: FakeSubscription, amount: number): FakeInvoice {
    const invoice: FakeInvoice = {
      id: this.mintId('in'),
      customerId: subscription.customerId,
      subscriptionId: subscription.id,
      createdAtMs: this.state.nowMs,
      amount,
      status: 'open',
      failures: 0,
      retryAtMs: null,
    }
    keep(this.state.invoices, invoice)
    this.emit('invoice.created', invoice)
    return invoice
  }

  #markPaid(invoice: FakeInvoice): void {
    invoice.status = 'paid'
    invoice.retryAtMs = null
    this.emit('invoice.paid', invoice)
  }

  #setStatus(subscription: FakeSubscription, status: FakeSubscription['status']): void {
    if (subscription.status === status) return
    subscription.status = status
    this.emit('customer.subscription.updated', subscription)
  }
}

/** A new fake without state. */
export function createFakeStripe(options: Omit<FakeStripeOptions, 'state'> & { readonly nowMs: number }): FakeStripe {
  return new FakeStripe({ ...options, state: emptyState(options.nowMs) })
}

function keep<Item>(list: Item[], item: Item): void {
  list.push(item)
  if (list.length > maxKept) list.shift()
}
