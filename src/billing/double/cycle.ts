import { dayMs, nextMonth } from './calendar.ts'
import type { StripeDouble } from './double.ts'
import { type DoubleSubscription, isOver } from './state.ts'

/** How long Stripe waits for a first payment. */
const incompleteMs = dayMs
/** Most steps per call; a simulated century of monthly renewals needs fewer. */
const maxSteps = 10_000

interface Step {
  readonly atMs: number
  readonly run: () => void
}

/** Advances the fake's clock: everything that falls due happens at its time, earliest first. */
export function advance(double: StripeDouble, untilMs: number): void {
  for (let count = 0; count < maxSteps; count++) {
    const due = dueSteps(double).filter(({ atMs }) => atMs <= untilMs)
    const [next] = due.toSorted((a, b) => a.atMs - b.atMs)
    if (next === undefined) break
    double.state.nowMs = Math.max(double.state.nowMs, next.atMs)
    next.run()
  }
  double.state.nowMs = Math.max(double.state.nowMs, untilMs)
}

function dueSteps(double: StripeDouble): Step[] {
  const { checkouts, subscriptions, invoices } = double.state
  const steps: Step[] = []
  for (const checkout of checkouts)
    if (checkout.status === 'open')
      steps.push({ atMs: checkout.expiresAtMs, run: () => double.expireCheckout(checkout) })
  for (const subscription of subscriptions) {
    if (isOver(subscription)) continue
    steps.push(
      subscription.status === 'incomplete'
        ? { atMs: subscription.createdAtMs + incompleteMs, run: () => expire(double, subscription) }
        : { atMs: subscription.periodEndsAtMs, run: () => endPeriod(double, subscription) },
    )
  }
  for (const invoice of invoices) {
    if (invoice.retryAtMs === null) continue
    const subscription = subscriptions.find(({ id }) => id === invoice.subscriptionId)
    if (subscription !== undefined)
      steps.push({ atMs: invoice.retryAtMs, run: () => double.collect(subscription, invoice) })
  }
  return steps
}

function expire(double: StripeDouble, subscription: DoubleSubscription): void {
  subscription.status = 'incomplete_expired'
  double.emit('customer.subscription.updated', subscription)
}

/** Ends a subscription that was canceled; renews any other one at the price chosen for it. */
function endPeriod(double: StripeDouble, subscription: DoubleSubscription): void {
  if (subscription.cancelsAtPeriodEnd) {
    double.cancelNow(subscription)
    return
  }
  subscription.periodStartsAtMs = subscription.periodEndsAtMs
  subscription.periodEndsAtMs = nextMonth(subscription.periodEndsAtMs)
  subscription.priceId = subscription.nextPriceId ?? subscription.priceId
  subscription.nextPriceId = null
  double.emit('customer.subscription.updated', subscription)
  // An invoice given up as unpaid is not collected again.
  if (subscription.status !== 'unpaid') double.invoice(subscription, double.amountOf(subscription.priceId))
}
