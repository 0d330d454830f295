/** Where a subscription stands, in the words of Stripe. */
export type SubscriptionStatus =
  | 'active'
  | 'trialing'
  | 'past_due'
  | 'unpaid'
  | 'incomplete'
  | 'incomplete_expired'
  | 'paused'
  | 'canceled'

/** What is paid each interval. `minorUnits` are cents, or whole units of a currency that has none. */
export interface Price {
  /** Three small letters, such as `usd`. */
  readonly currency: string
  readonly minorUnits: number
  readonly interval: 'day' | 'week' | 'month' | 'year'
  readonly intervalCount: number
}

/** One subscription of a customer as it was read. */
export interface Subscription {
  readonly id: string
  readonly status: SubscriptionStatus
  /** The plan that its price buys; null for a price that the configuration does not name. */
  readonly planId: string | null
  /** Null where the price is not one amount for an interval. */
  readonly price: Price | null
  readonly createdAtMs: number
  /** When the period that is paid ends, and the next invoice is due. */
  readonly periodEndsAtMs: number
  /** When it ends by itself, if it was cancelled to its end. */
  readonly endsAtMs: number | null
  /** The plan that follows this one, for a downgrade at the end of the period. */
  readonly next: { readonly planId: string | null; readonly atMs: number } | null
  /** Since when an invoice is unpaid; null where none is. */
  readonly dueSinceMs: number | null
}

/** A plan that can be bought, and for what. */
export interface Offer {
  readonly planId: string
  readonly price: Price | null
}

/** What became of a request for another plan, which an operator decides where nothing is sold. */
export type UpgradeState = 'requested' | 'approved' | 'rejected' | 'withdrawn'

/** A request for another plan. An account has one open one at most. */
export interface UpgradeRequest {
  /** `upg_…` */
  readonly id: string
  readonly accountId: string
  /** The plan that is asked for. */
  readonly planId: string
  readonly state: UpgradeState
  readonly createdAtMs: number
  /** When it was approved, rejected or withdrawn. */
  readonly decidedAtMs: number | null
}
