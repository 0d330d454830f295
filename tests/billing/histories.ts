import type { StripeDouble } from '../../src/billing/double/double.ts'
import type { DoubleCustomer, DoubleSubscription } from '../../src/billing/double/state.ts'
import type { Chance } from './chance.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** One thing that a customer, a bank, Stripe or time does. */
export function actAtRandom(
  double: StripeDouble,
  customer: DoubleCustomer,
  chance: Chance,
  pass: (ms: number) => void = (ms) => double.advanceTo(double.state.nowMs + ms),
): void {
  const live = double
    .subscriptionsOf(customer.id)
    .filter(({ status }) => status !== 'canceled' && status !== 'incomplete_expired')
  const [subscription] = live
  const priceId = chance.pick(['price_pro', 'price_max'])
  const actions = [
    () => pass(chance.below(20 * dayMs)),
    () => pass(chance.below(5 * hourMs)),
    () => double.setCard(customer, chance.isBelow(0.6)),
    ...(subscription === undefined
      ? [() => subscribe(double, customer, priceId, chance), () => subscribe(double, customer, priceId, chance)]
      : changes(double, subscription, priceId, chance)),
  ]
  chance.pick(actions)()
}

function subscribe(double: StripeDouble, customer: DoubleCustomer, priceId: string, chance: Chance): void {
  if (chance.isBelow(0.1)) {
    double.subscribeIncomplete(customer, priceId)
    return
  }
  const draft = { customerId: customer.id, priceId, reference: null, successUrl: 'ok:', cancelUrl: 'no:' }
  const checkout = double.openCheckout(draft)
  if (chance.isBelow(0.1)) double.expireCheckout(checkout)
  else double.payCheckout(checkout, { trial: chance.isBelow(0.2) })
}

function changes(
  double: StripeDouble,
  subscription: DoubleSubscription,
  priceId: string,
  chance: Chance,
): (() => void)[] {
  return [
    () => double.changePrice(subscription, priceId),
    () => double.changePrice(subscription, priceId),
    () => double.cancelAtPeriodEnd(subscription, chance.isBelow(0.7)),
    () => double.payOpen(subscription),
    ...(chance.isBelow(0.3) ? [() => double.cancelNow(subscription)] : []),
  ]
}

/**
 * The plan that is right, said apart from the service's own rules: of what is active or tried out, or owes an invoice
 * for less than the time of grace, the dearest; otherwise the free one.
 */
export function rightPlan(double: StripeDouble, customerId: string, graceMs: number): string {
  let best = 0
  for (const { id, status, priceId } of double.subscriptionsOf(customerId)) {
    let counts = status === 'active' || status === 'trialing'
    if (status === 'past_due') {
      const made = double.openInvoices(id).map(({ createdAtMs }) => Math.floor(createdAtMs))
      counts = double.state.nowMs < Math.min(...made) + graceMs
    }
    if (counts) best = Math.max(best, double.amountOf(priceId))
  }
  return best === 0 ? 'free' : best === 2000 ? 'pro' : 'max'
}
