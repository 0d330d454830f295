import type { SubscriptionStatus } from '../../domain/billing.ts'

/** Maximum number of objects of each kind; beyond it the oldest are deleted. Trials and tests stay far below it. */
export const maxKept = 2000

/** The whole state of the fake as plain JSON. Times are epoch milliseconds. */
export interface FakeStripeState {
  /** The fake's current time: it only moves forward, and can be advanced. */
  nowMs: number
  /** How far a trial has advanced it beyond the real clock. */
  aheadMs: number
  customers: FakeCustomer[]
  checkouts: FakeCheckout[]
  portals: FakePortal[]
  subscriptions: FakeSubscription[]
  invoices: FakeInvoice[]
}

export interface FakeCustomer {
  readonly id: string
  readonly name: string
  readonly metadata: Readonly<Record<string, string>>
  /** Whether its card is declined. */
  cardFails: boolean
}

export interface FakeCheckout {
  readonly id: string
  readonly customerId: string
  readonly priceId: string
  readonly reference: string | null
  readonly successUrl: string
  readonly cancelUrl: string
  readonly expiresAtMs: number
  status: 'open' | 'complete' | 'expired'
}

export interface FakePortal {
  readonly id: string
  readonly customerId: string
  readonly returnUrl: string
}

export interface FakeSubscription {
  readonly id: string
  readonly customerId: string
  readonly createdAtMs: number
  priceId: string
  status: SubscriptionStatus
  periodStartsAtMs: number
  periodEndsAtMs: number
  cancelsAtPeriodEnd: boolean
  canceledAtMs: number | null
  /** The price from the next period on. */
  nextPriceId: string | null
}

export interface FakeInvoice {
  readonly id: string
  readonly customerId: string
  readonly subscriptionId: string
  readonly createdAtMs: number
  readonly amount: number
  status: 'open' | 'paid' | 'uncollectible'
  /** Number of failed payments. */
  failures: number
  /** When collection is retried; null for never. */
  retryAtMs: number | null
}

/** A plan's price in the fake. */
export interface FakePrice {
  readonly id: string
  readonly productId: string
  readonly name: string
  readonly minorUnits: number
}

/** The state of a new fake. */
export function emptyState(nowMs: number): FakeStripeState {
  return { nowMs, aheadMs: 0, customers: [], checkouts: [], portals: [], subscriptions: [], invoices: [] }
}

/** Whether a subscription has ended for good. */
export function isOver({ status }: FakeSubscription): boolean {
  return status === 'canceled' || status === 'incomplete_expired'
}
