import type { Subscription } from '../../domain/billing.ts'
import type { Plan } from '../../domain/plans.ts'

/** What a customer's subscriptions grant at one moment. */
export interface Entitlement {
  /**
   * The granted plan; null for none. Undefined if a current subscription has a price that is not configured: then
   * nothing is decided, because a price missing from the configuration must not take away a paid plan (contract 22.6).
   */
  readonly grant: string | null | undefined
  /** The subscription that grants it. */
  readonly subscription: Subscription | null
  /** How many subscriptions are current: with more than one the customer pays twice. */
  readonly standing: number
  /** When the entitlement will change with time alone, as far as known. */
  readonly changesAtMs: number | undefined
}

/** How plans are ranked, how long an invoice may stay unpaid, and the current time. */
export interface EntitlementRules {
  /** As configured, smallest plan first. */
  readonly plans: readonly Plan[]
  readonly graceMs: number
  readonly nowMs: number
}

/**
 * The highest plan among the current subscriptions. Active and trialing subscriptions are current, and past due ones
 * during the grace period, which starts with the oldest unpaid invoice. The result depends only on the subscriptions
 * and the time, so the order in which webhooks arrive does not matter.
 */
export function entitlementOf(subscriptions: readonly Subscription[], rules: EntitlementRules): Entitlement {
  const rankOf = (planId: string | null): number => rules.plans.findIndex((plan) => plan.id === planId)
  const ordered = subscriptions.toSorted(
    (a, b) =>
      Number(isCurrent(b, rules)) - Number(isCurrent(a, rules)) ||
      rankOf(b.planId) - rankOf(a.planId) ||
      b.createdAtMs - a.createdAtMs,
  )
  const current = ordered.filter((subscription) => isCurrent(subscription, rules))
  const known = current.find(({ planId }) => rankOf(planId) >= 0)
  const grant = known?.planId ?? (current.length > 0 ? undefined : null)
  const moments = ordered.flatMap((subscription) => momentsOf(subscription, rules)).filter((ms) => ms > rules.nowMs)
  return {
    grant,
    subscription: known ?? ordered[0] ?? null,
    standing: current.length,
    changesAtMs: moments.length === 0 ? undefined : Math.min(...moments),
  }
}

/** When the grace period of a past due subscription ends (contract 22.5). */
export function graceEndsAtMs({ dueSinceMs }: Subscription, graceMs: number): number {
  return (dueSinceMs ?? 0) + graceMs
}

function isCurrent(subscription: Subscription, { graceMs, nowMs }: EntitlementRules): boolean {
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
