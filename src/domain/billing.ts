/** The status of a subscription, in Stripe's terms. */
export type SubscriptionStatus =
  | 'active'
  | 'trialing'
  | 'past_due'
  | 'unpaid'
  | 'incomplete'
  | 'incomplete_expired'
  | 'paused'
  | 'canceled'

/** The price per interval. `minorUnits` are cents, or whole units of a currency without cents. */
export interface Price {
  /** Three lower-case letters, such as `usd`. */
  readonly currency: string
  readonly minorUnits: number
  readonly interval: 'day' | 'week' | 'month' | 'year'
  readonly intervalCount: number
}

/** A customer's subscription as the billing provider reports it. */
export interface Subscription {
  readonly id: string
  readonly status: SubscriptionStatus
  /** The plan for its price; null if the configuration does not name the price. */
  readonly planId: string | null
  /** Null unless the price is one amount per interval. */
  readonly price: Price | null
  readonly createdAtMs: number
  /** When the paid period ends and the next invoice is due. */
  readonly periodEndsAtMs: number
  /** When it ends, if it was canceled for the end of the period. */
  readonly endsAtMs: number | null
  /** The plan after this period, for a downgrade. */
  readonly next: { readonly planId: string | null; readonly atMs: number } | null
  /** Since when an invoice is unpaid; null if none is. */
  readonly dueSinceMs: number | null
}

/** A plan that can be bought, and its price. */
export interface Offer {
  readonly planId: string
  readonly price: Price | null
}

/** The state of an upgrade request, which an operator decides if plans are not sold. */
export type UpgradeState = 'requested' | 'approved' | 'rejected' | 'withdrawn'

/** A request for another plan. An account has at most one open request (contract 22.10). */
export interface UpgradeRequest {
  /** `upg_…` */
  readonly id: string
  readonly accountId: string
  /** The requested plan. */
  readonly planId: string
  readonly state: UpgradeState
  readonly createdAtMs: number
  /** When it was approved, rejected, or withdrawn. */
  readonly decidedAtMs: number | null
}
