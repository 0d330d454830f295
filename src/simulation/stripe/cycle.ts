import { dayMs } from '../../runtime/durations.ts'
import { nextMonth } from './calendar.ts'
import type { FakeStripe } from './fake-stripe.ts'
import { type FakeSubscription, isOver } from './state.ts'

/** How long Stripe waits for a first payment. */
const incompleteMs = dayMs
/** Maximum number of steps per call; a simulated century of monthly renewals needs fewer. */
const maxSteps = 10_000

interface Step {
  readonly atMs: number
  readonly run: () => void
}

/**
 * Advances the fake's clock. Everything that falls due happens at its time, earliest first: expiries, renewals,
 * retries, and the ends of canceled subscriptions.
 */
export function advance(fake: FakeStripe, untilMs: number): void {
  for (let count = 0; count < maxSteps; count++) {
    const due = dueSteps(fake).filter(({ atMs }) => atMs <= untilMs)
    const [next] = due.toSorted((a, b) => a.atMs - b.atMs)
    if (next === undefined) break
    fake.state.nowMs = Math.max(fake.state.nowMs, next.atMs)
    next.run()
  }
  fake.state.nowMs = Math.max(fake.state.nowMs, untilMs)
}

function dueSteps(fake: FakeStripe): Step[] {
  const { checkouts, subscriptions, invoices } = fake.state
  const steps: Step[] = []
  for (const checkout of checkouts)
    if (checkout.status === 'open') steps.push({ atMs: checkout.expiresAtMs, run: () => fake.expireCheckout(checkout) })
  for (const subscription of subscriptions) {
    if (isOver(subscription)) continue
    steps.push(
      subscription.status === 'incomplete'
        ? { atMs: subscription.createdAtMs + incompleteMs, run: () => expire(fake, subscription) }
        : { atMs: subscription.periodEndsAtMs, run: () => endPeriod(fake, subscription) },
    )
  }
  for (const invoice of invoices) {
    if (invoice.retryAtMs === null) continue
    const subscription = subscriptions.find(({ id }) => id === invoice.subscriptionId)
    if (subscription !== undefined)
      steps.push({ atMs: invoice.retryAtMs, run: () => fake.collect(subscription, invoice) })
  }
  return steps
}

function expire(fake: FakeStripe, subscription: FakeSubscription): void {
  subscription.status = 'incomplete_expired'
  fake.emit('customer.subscription.updated', subscription)
}

/** Ends a subscription that was canceled; renews any other one at the price chosen for it. */
function endPeriod(fake: FakeStripe, subscription: FakeSubscription): void {
  if (subscription.cancelsAtPeriodEnd) {
    fake.cancelNow(subscription)
    return
  }
  subscription.periodStartsAtMs = subscription.periodEndsAtMs
  subscription.periodEndsAtMs = nextMonth(subscription.periodEndsAtMs)
  subscription.priceId = subscription.nextPriceId ?? subscription.priceId
  subscription.nextPriceId = null
  fake.emit('customer.subscription.updated', subscription)
  // An invoice given up as unpaid is not collected again.
  if (subscription.status !== 'unpaid') fake.invoice(subscription, fake.amountOf(subscription.priceId))
}
