import type { Subscription } from '../../domain/billing.ts'
import type { Plan } from '../../domain/plans.ts'

/** What a customer's subscriptions come to at one moment. */
export interface Entitlement {
  /**
   * The plan that they grant; null for none. Undefined where one stands whose price nobody configured: then nothing is
   * decided, because a price that was forgotten in the configuration must not take a paid plan away.
   */
  readonly grant: string | null | undefined
  /** The one that decides. */
  readonly subscription: Subscription | null
  /** How many stand: with more than one the customer pays twice. */
  readonly standing: number
  /** When it comes to something else by the passing of time, as far as can be told. */
  readonly changesAtMs: number | undefined
}

/** How plans are compared, how long an unpaid invoice is waited for, and when. */
export interface EntitlementRules {
  /** From the least to the most, as configured. */
  readonly plans: readonly Plan[]
  readonly graceMs: number
  readonly nowMs: number
}

/**
 * The plan that subscriptions grant: of those that stand the highest. Active and trialing ones stand, and past due ones
 * for the time of grace, counted from the oldest invoice that is unpaid. It depends on nothing but what is read and the
 * time, so that the order in which changes were heard of cannot matter.
 */
export function entitlementOf(subscriptions: readonly Subscription[], rules: EntitlementRules): Entitlement {
  const rankOf = (planId: string | null): number => rules.plans.findIndex((plan) => plan.id === planId)
  const ordered = subscriptions.toSorted(
    (a, b) =>
      Number(stands(b, rules)) - Number(stands(a, rules)) ||
      rankOf(b.planId) - rankOf(a.planId) ||
      b.createdAtMs - a.createdAtMs,
  )
  const standing = ordered.filter((subscription) => stands(subscription, rules))
  const known = standing.find(({ planId }) => rankOf(planId) >= 0)
  const grant = known?.planId ?? (standing.length > 0 ? undefined : null)
  const moments = ordered.flatMap((subscription) => momentsOf(subscription, rules)).filter((ms) => ms > rules.nowMs)
  return {
    grant,
    subscription: known ?? ordered[0] ?? null,
    standing: standing.length,
    changesAtMs: moments.length === 0 ? undefined : Math.min(...moments),
  }
}

/** Until when a past due subscription still stands. */
export function graceEndsAtMs({ dueSinceMs }: Subscription, graceMs: number): number {
  return (dueSinceMs ?? 0) + graceMs
}

function stands(subscription: Subscription, { graceMs, nowMs }: EntitlementRules): boolean {
  if (subscription.status === 'past_due') return nowMs < graceEndsAtMs(subscription, graceMs)
  return subscription.status === 'active' || subscription.status === 'trialing'
}

function momentsOf(subscription: Subscription, { graceMs }: EntitlementRules): number[] {
  const { periodEndsAtMs, endsAtMs, next, status } = subscription
  return [
    periodEndsAtMs,
    ...(endsAtMs === null ? [] : [endsAtMs]),
    ...(next === null ? [] : [next.atMs]),
    ...(status === 'past_due' ? [graceEndsAtMs(subscription, graceMs)] : []),
  ]
}
