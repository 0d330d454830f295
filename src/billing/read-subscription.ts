import type { Stripe } from 'stripe'
import type { Price, Subscription, SubscriptionStatus } from '../domain/billing.ts'

const statuses: readonly SubscriptionStatus[] = [
  'active',
  'trialing',
  'past_due',
  'unpaid',
  'incomplete',
  'incomplete_expired',
  'paused',
  'canceled',
]
const intervals: readonly Price['interval'][] = ['day', 'week', 'month', 'year']

/** The plan that a price buys; null if the configuration does not name the price. */
export type PlanOfPrice = (priceId: string) => string | null

/**
 * Converts a Stripe subscription. `dueSinceMs` is when the oldest unpaid invoice was created, if the caller looked it
 * up. A status unknown to this version is read as `paused`, which grants nothing.
 */
export function readSubscription(
  given: Stripe.Subscription,
  planOf: PlanOfPrice,
  dueSinceMs: number | null,
): Subscription {
  const [item] = given.items.data
  const periodEndsAtMs = (item?.current_period_end ?? given.created) * 1000
  const cancelAt = given.cancel_at ?? null
  return {
    id: given.id,
    status: statuses.find((status) => status === given.status) ?? 'paused',
    planId: item === undefined ? null : planOf(item.price.id),
    price: item === undefined ? null : readPrice(item.price),
    createdAtMs: given.created * 1000,
    periodEndsAtMs,
    endsAtMs: cancelAt === null ? (given.cancel_at_period_end ? periodEndsAtMs : null) : cancelAt * 1000,
    next: readNext(given, item?.price.id, planOf),
    dueSinceMs,
  }
}

/** When the period began that a past due subscription owes for; used until the unpaid invoice is known. */
export function periodStartMs(given: Stripe.Subscription): number {
  return (given.items.data[0]?.current_period_start ?? given.created) * 1000
}

/** The price per interval; null for tiered and metered prices. */
export function readPrice({ currency, unit_amount: minorUnits, recurring }: Stripe.Price): Price | null {
  const interval = intervals.find((known) => known === recurring?.interval)
  if (typeof minorUnits !== 'number' || interval === undefined || !recurring) return null
  return { currency, minorUnits, interval, intervalCount: recurring.interval_count }
}

/** The next phase of a schedule, if its price differs. */
function readNext(given: Stripe.Subscription, priceId: string | undefined, planOf: PlanOfPrice): Subscription['next'] {
  const { schedule } = given
  if (schedule === null || schedule === undefined || typeof schedule === 'string') return null
  const running = (given.items.data[0]?.current_period_start ?? given.created) + 1
  const phase = schedule.phases.find(({ start_date: start }) => start > running)
  const price = phase?.items[0]?.price
  const nextId = typeof price === 'string' ? price : price?.id
  if (phase === undefined || nextId === undefined || nextId === priceId) return null
  return { planId: planOf(nextId), atMs: phase.start_date * 1000 }
}
