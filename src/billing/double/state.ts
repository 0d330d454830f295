import type { SubscriptionStatus } from '../../domain/billing.ts'

/** Kept of each kind; beyond it the oldest go. A trial and a test never come near. */
export const maxKept = 2000

/** Everything that the double of Stripe remembers, as plain JSON. Times are epoch milliseconds. */
export interface DoubleState {
  /** The time that it believes: it only goes forward, and may be moved ahead. */
  nowMs: number
  /** How far a trial has moved it ahead of the real clock. */
  aheadMs: number
  customers: DoubleCustomer[]
  checkouts: DoubleCheckout[]
  portals: DoublePortal[]
  subscriptions: DoubleSubscription[]
  invoices: DoubleInvoice[]
}

export interface DoubleCustomer {
  readonly id: string
  readonly name: string
  readonly metadata: Readonly<Record<string, string>>
  /** Whether its card is refused. */
  cardFails: boolean
}

export interface DoubleCheckout {
  readonly id: string
  readonly customerId: string
  readonly priceId: string
  readonly reference: string | null
  readonly successUrl: string
  readonly cancelUrl: string
  readonly expiresAtMs: number
  status: 'open' | 'complete' | 'expired'
}

export interface DoublePortal {
  readonly id: string
  readonly customerId: string
  readonly returnUrl: string
}

export interface DoubleSubscription {
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

export interface DoubleInvoice {
  readonly id: string
  readonly customerId: string
  readonly subscriptionId: string
  readonly createdAtMs: number
  readonly amount: number
  status: 'open' | 'paid' | 'uncollectible'
  /** Payments that failed. */
  failures: number
  /** When it is tried again; null where it is not. */
  retryAtMs: number | null
}

/** What a plan costs at the double. */
export interface DoublePrice {
  readonly id: string
  readonly productId: string
  readonly name: string
  readonly minorUnits: number
}

/** A double that has just begun. */
export function emptyState(nowMs: number): DoubleState {
  return { nowMs, aheadMs: 0, customers: [], checkouts: [], portals: [], subscriptions: [], invoices: [] }
}

/** Whether nothing can become of a subscription any more. */
export function isOver({ status }: DoubleSubscription): boolean {
  return status === 'canceled' || status === 'incomplete_expired'
}
