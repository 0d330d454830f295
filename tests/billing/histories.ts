import { advance } from '../../src/simulation/stripe/cycle.ts'
import type { FakeStripe } from '../../src/simulation/stripe/fake-stripe.ts'
import type { FakeCustomer, FakeSubscription } from '../../src/simulation/stripe/state.ts'
import type { Chance } from './chance.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** One action of a customer, a bank, or Stripe, or a passage of time. */
export function actAtRandom(
  fake: FakeStripe,
  customer: FakeCustomer,
  chance: Chance,
  pass: (ms: number) => void = (ms) => advance(fake, fake.state.nowMs + ms),
): void {
  const live = fake
    .subscriptionsOf(customer.id)
    .filter(({ status }) => status !== 'canceled' && status !== 'incomplete_expired')
  const [subscription] = live
  const priceId = chance.pick(['price_pro', 'price_max'])
  const actions = [
    () => pass(chance.below(20 * dayMs)),
    () => pass(chance.below(5 * hourMs)),
    () => fake.setCard(customer, chance.isBelow(0.6)),
    ...(subscription === undefined
      ? [() => subscribe(fake, customer, priceId, chance), () => subscribe(fake, customer, priceId, chance)]
      : changes(fake, subscription, priceId, chance)),
  ]
  chance.pick(actions)()
}

function subscribe(fake: FakeStripe, customer: FakeCustomer, priceId: string, chance: Chance): void {
  if (chance.isBelow(0.1)) {
    fake.subscribeIncomplete(customer, priceId)
    return
  }
  const draft = { customerId: customer.id, priceId, reference: null, successUrl: 'ok:', cancelUrl: 'no:' }
  const checkout = fake.openCheckout(draft)
  if (chance.isBelow(0.1)) fake.expireCheckout(checkout)
  else fake.payCheckout(checkout, { trial: chance.isBelow(0.2) })
}

function changes(fake: FakeStripe, subscription: FakeSubscription, priceId: string, chance: Chance): (() => void)[] {
  return [
    () => fake.changePrice(subscription, priceId),
    () => fake.changePrice(subscription, priceId),
    () => fake.cancelAtPeriodEnd(subscription, chance.isBelow(0.7)),
    () => fake.payOpen(subscription),
    ...(chance.isBelow(0.3) ? [() => fake.cancelNow(subscription)] : []),
  ]
}

/**
 * The expected plan, independent of the service's implementation: the most expensive one that is active, in a trial, or
 * past due for less than the grace period; otherwise the free one.
 */
export function rightPlan(fake: FakeStripe, customerId: string, graceMs: number): string {
  let best = 0
  for (const { id, status, priceId } of fake.subscriptionsOf(customerId)) {
    let counts = status === 'active' || status === 'trialing'
    if (status === 'past_due') {
      const made = fake.openInvoices(id).map(({ createdAtMs }) => Math.floor(createdAtMs))
      counts = fake.state.nowMs < Math.min(...made) + graceMs
    }
    if (counts) best = Math.max(best, fake.amountOf(priceId))
  }
  return best === 0 ? 'free' : best === 2000 ? 'pro' : 'max'
}
