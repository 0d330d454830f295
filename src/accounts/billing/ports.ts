import type { AuditRecord } from '../../domain/audit.ts'
import type { Offer, Subscription, UpgradeRequest, UpgradeState } from '../../domain/billing.ts'

/**
 * Why a call to the payment provider failed: `unreachable` (try again), `customer_unknown` (the customer was created
 * with other API keys), `misconfigured` (the provider rejects the credentials or prices). It never contains the
 * provider's message.
 */
export type BillingTrouble = 'unreachable' | 'customer_unknown' | 'misconfigured'

/** @see BillingTrouble */
export class BillingFailure extends Error {
  override readonly name = 'BillingFailure'
  readonly trouble: BillingTrouble

  constructor(trouble: BillingTrouble) {
    super(trouble)
    this.trouble = trouble
  }
}

/** A webhook that does not carry a recent valid signature, or is not an event. */
export class WebhookRejected extends Error {
  override readonly name = 'WebhookRejected'
}

/**
 * All that is read from an event: the customer for whom something may have changed. The current state is then read from
 * the provider.
 */
export interface BillingHint {
  readonly eventId: string
  /** Undefined if the event concerns no customer or nothing that plans depend on. */
  readonly customerId: string | undefined
}

/** What a checkout is opened with. */
export interface CheckoutDraft {
  readonly accountId: string
  readonly customerId: string
  readonly planId: string
  /** The same for every attempt to open this checkout. */
  readonly idempotencyKey: string
  /** Where the browser goes after payment or cancellation. */
  readonly returnUrl: string
  readonly cancelUrl: string
}

/** The payment provider. Every call has a time limit. @throws BillingFailure from every asynchronous call */
export interface Billing {
  /** Whether payments are simulated: pages and answers must say so. */
  readonly isSimulated: boolean
  /** Origins of the pages that `openCheckout` and `openPortal` lead to, for a page's form-action. */
  readonly pageOrigins: readonly string[]
  /** The plans for sale, in configuration order. */
  offers(): Promise<readonly Offer[]>
  /** Creates the customer of an account; repeated calls within a day return the same one. */
  createCustomer(accountId: string, name: string): Promise<string>
  /** Opens a checkout and returns its URL. */
  openCheckout(draft: CheckoutDraft): Promise<string>
  /** Closes a customer's open checkouts, so that nobody pays twice. */
  closeCheckouts(customerId: string): Promise<void>
  /** Opens the customer portal (plan, card, cancellation) and returns its URL. */
  openPortal(customerId: string, returnUrl: string): Promise<string>
  /** A customer's current subscriptions, without ended ones. */
  subscriptionsOf(customerId: string): Promise<readonly Subscription[]>
  /** Cancels a subscription immediately; no effect on one that has ended. */
  cancel(subscriptionId: string): Promise<void>
  /** @throws WebhookRejected */
  readWebhook(rawBody: Uint8Array, signature: string, nowMs: number): BillingHint
}

/** An account's billing record. */
export interface BillingRecord {
  readonly accountId: string
  /** Linked once and never changed. */
  readonly customerId: string | null
  /** The plan its subscription grants, as last applied; null for none. */
  readonly grantedPlanId: string | null
  /** The subscription that grants it, as last read. */
  readonly subscription: Subscription | null
  /** When it was read. */
  readonly readAtMs: number | null
  /** When it must be read again at the latest. */
  readonly checkAtMs: number
  /** Since when the account is being closed: its remaining subscriptions are canceled. */
  readonly closingSinceMs: number | null
}

/** The result of one read of a customer's subscriptions. */
export interface AppliedRead {
  readonly accountId: string
  /** From `takeRead`, called before the read began. */
  readonly read: number
  readonly subscription: Subscription | null
  /** The granted plan, null for none; undefined leaves the previous grant in place. */
  readonly grant: string | null | undefined
  /** The plan of accounts without a grant. */
  readonly planWithoutGrant: string
  readonly nowMs: number
  readonly checkAtMs: number
  /** The event that caused the read, recorded in the same transaction. */
  readonly eventId: string | undefined
}

/** `changed`: the account moved to another plan. `stale`: a later read was already applied. */
export type ReadOutcome = 'changed' | 'unchanged' | 'stale'

/** Stored billing data. Each write is one transaction; every plan change increments the revision (contract 3.11). */
export type BillingStore = BillingQueries & UpgradeRequestQueries

export interface BillingQueries {
  findBilling(accountId: string): Promise<BillingRecord | undefined>
  findBillingOf(customerId: string): Promise<BillingRecord | undefined>
  /** Links a customer to the account unless it has one, and returns the linked customer. */
  linkCustomer(accountId: string, customerId: string, checkAtMs: number): Promise<string>
  /** A number for a read that is about to begin, higher than that of every earlier read. */
  takeRead(accountId: string): Promise<number>
  /** Applies a read unless a later one was applied. Granting another plan moves the account to it (contract 22.7). */
  applyRead(read: AppliedRead): Promise<ReadOutcome>
  /** Schedules an account's next check at `atMs` unless it is due earlier. */
  scheduleCheckNow(accountId: string, atMs: number): Promise<void>
  /** Schedules the check at `atMs`, earlier or later than before. */
  postponeCheck(accountId: string, atMs: number): Promise<void>
  /** Claims up to `limit` accounts whose check is due, oldest first; their next check is set to `againAtMs`. */
  claimChecks(nowMs: number, againAtMs: number, limit: number): Promise<readonly BillingRecord[]>
  /** Marks an account as closing and its check as due; false if it has no linked customer. */
  beginClosing(accountId: string, nowMs: number): Promise<boolean>
  /** Deletes an account's billing record. */
  removeBilling(accountId: string): Promise<void>

  hasHandled(eventId: string): Promise<boolean>
  noteHandled(eventId: string, nowMs: number): Promise<void>
  /** Deletes at most `limit` events handled before `timeMs` and returns how many. */
  deleteEventsBefore(timeMs: number, limit: number): Promise<number>
}

export interface UpgradeRequestQueries {
  /** False if the account has an open request. Only the newest `maxKept` decided requests are stored. */
  addUpgradeRequest(request: UpgradeRequest, maxKept: number, record: AuditRecord): Promise<boolean>
  findUpgradeRequest(id: string): Promise<UpgradeRequest | undefined>
  /** Newest first, at most `limit`; for one account or all, open requests or all. */
  listUpgradeRequests(selection: UpgradeSelection): Promise<readonly UpgradeRequest[]>
  /**
   * Decides an open request; approval moves the account to the plan. False if the request is not open or the account
   * was deleted.
   */
  decideUpgradeRequest(id: string, state: Exclude<UpgradeState, 'requested'>, record: AuditRecord): Promise<boolean>
}

export interface UpgradeSelection {
  readonly limit: number
  readonly accountId?: string
  readonly onlyOpen?: boolean
}

/** The answer to a webhook: `status` is sent, `outcome` says why and may be shown to the sender. */
export interface WebhookAnswer {
  readonly status: 200 | 400 | 413 | 503
  readonly outcome: 'applied' | 'seen before' | 'not for us' | 'refused' | 'too large' | 'busy' | 'try again'
}

/** Request headers, such as a `Headers` object. */
interface WebhookHeaders {
  get(name: string): string | null
}

/** Handles one webhook, given the exact body bytes. Never throws. */
export type HandleWebhook = (rawBody: Uint8Array, headers: WebhookHeaders) => Promise<WebhookAnswer>
