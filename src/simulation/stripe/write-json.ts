import type { FakeEvent, FakeStripe } from './fake-stripe.ts'
import type { FakeCheckout, FakeInvoice, FakePrice, FakeSubscription } from './state.ts'

type Json = Record<string, unknown>

/** A list as Stripe writes it; the fake never needs a second page. */
export function writeList(url: string, data: readonly Json[]): Json {
  return { object: 'list', url, has_more: false, data }
}

export function writePrice(price: FakePrice): Json {
  return {
    id: price.id,
    object: 'price',
    active: true,
    currency: 'usd',
    livemode: false,
    nickname: `${price.name} (simulated)`,
    product: price.productId,
    recurring: { interval: 'month', interval_count: 1 },
    type: 'recurring',
    unit_amount: price.minorUnits,
  }
}

/** A subscription in the form of API version 2026-10-28: periods are on its items, a later price is in its schedule. */
export function writeSubscription(fake: FakeStripe, subscription: FakeSubscription): Json {
  const { id, customerId, periodEndsAtMs, periodStartsAtMs, cancelsAtPeriodEnd } = subscription
  const price = fake.prices.find((known) => known.id === subscription.priceId)
  const item = {
    id: `si_${id}`,
    object: 'subscription_item',
    current_period_start: seconds(periodStartsAtMs),
    current_period_end: seconds(periodEndsAtMs),
    price: price === undefined ? { id: subscription.priceId, object: 'price' } : writePrice(price),
    quantity: 1,
    subscription: id,
  }
  return {
    id,
    object: 'subscription',
    customer: customerId,
    status: subscription.status,
    livemode: false,
    created: seconds(subscription.createdAtMs),
    cancel_at: cancelsAtPeriodEnd ? seconds(periodEndsAtMs) : null,
    cancel_at_period_end: cancelsAtPeriodEnd,
    canceled_at: subscription.canceledAtMs === null ? null : seconds(subscription.canceledAtMs),
    items: writeList('/v1/subscription_items', [item]),
    schedule: writeSchedule(subscription),
    metadata: { simulated: 'true' },
  }
}

export function writeInvoice(invoice: FakeInvoice): Json {
  return {
    id: invoice.id,
    object: 'invoice',
    customer: invoice.customerId,
    status: invoice.status,
    created: seconds(invoice.createdAtMs),
    amount_due: invoice.amount,
    currency: 'usd',
    livemode: false,
    parent: { type: 'subscription_details', subscription_details: { subscription: invoice.subscriptionId } },
  }
}

/** A checkout; its page is under `origin`. */
export function writeCheckout(checkout: FakeCheckout, origin: string): Json {
  return {
    id: checkout.id,
    object: 'checkout.session',
    mode: 'subscription',
    customer: checkout.customerId,
    client_reference_id: checkout.reference,
    status: checkout.status,
    expires_at: seconds(checkout.expiresAtMs),
    livemode: false,
    url: checkout.status === 'open' ? `${origin}/checkout/${checkout.id}` : null,
  }
}

/** An event as a webhook carries it. */
export function writeEvent(fake: FakeStripe, event: FakeEvent, apiVersion: string): Json {
  const { about } = event
  const object =
    'periodEndsAtMs' in about
      ? writeSubscription(fake, about)
      : 'amount' in about
        ? writeInvoice(about)
        : writeCheckout(about, '')
  return {
    id: event.id,
    object: 'event',
    api_version: apiVersion,
    created: seconds(event.createdAtMs),
    livemode: false,
    type: event.type,
    data: { object },
  }
}

function writeSchedule({ id, priceId, nextPriceId, periodStartsAtMs, periodEndsAtMs }: FakeSubscription): Json | null {
  if (nextPriceId === null) return null
  return {
    id: `sub_sched_${id}`,
    object: 'subscription_schedule',
    status: 'active',
    phases: [
      { start_date: seconds(periodStartsAtMs), end_date: seconds(periodEndsAtMs), items: [{ price: priceId }] },
      { start_date: seconds(periodEndsAtMs), end_date: null, items: [{ price: nextPriceId }] },
    ],
  }
}

function seconds(timeMs: number): number {
  return Math.floor(timeMs / 1000)
}
