import type { AuditRecord } from '../../domain/audit.ts'
import type { Offer, Subscription, UpgradeRequest, UpgradeState } from '../../domain/billing.ts'

/**
 * Why something could not be had from whoever takes the money: `unreachable` (try again), `customer_unknown` (other keys
 * than those that the customer was made with), `misconfigured` (credentials or prices that it does not take). It never
 * carries the other side's words.
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

/** A webhook that was not signed with our secret, not just now, or is no event. */
export class WebhookRefused extends Error {
  override readonly name = 'WebhookRefused'
}

/** All that is taken from an event: that something may have changed for a customer. What it says is read anew. */
export interface BillingHint {
  readonly eventId: string
  /** Undefined where the event is about nobody, or about something that plans do not depend on. */
  readonly customerId: string | undefined
}

/** What a checkout is opened for. */
export interface CheckoutDraft {
  readonly accountId: string
  readonly customerId: string
  readonly planId: string
  /** The same for every attempt to open this one. */
  readonly idempotencyKey: string
  /** Where the browser goes when it is paid, and when it is left. */
  readonly returnUrl: string
  readonly cancelUrl: string
}

/** Whoever takes the money. Calls are bounded in time. @throws BillingFailure from every call that waits */
export interface Billing {
  /** Whether no money moves: pages and answers must say so. */
  readonly isSimulated: boolean
  /** Origins of the pages that `openCheckout` and `openPortal` lead to, for a page's form-action. */
  readonly pageOrigins: readonly string[]
  /** What can be bought, in the order of the configuration. */
  offers(): Promise<readonly Offer[]>
  /** Makes the customer of an account; the same one again when it is called again within a day. */
  createCustomer(accountId: string, name: string): Promise<string>
  /** Opens a page to buy a plan and gives its URL. */
  openCheckout(draft: CheckoutDraft): Promise<string>
  /** Closes the pages of a customer that are still open, so that nobody pays twice. */
  closeCheckouts(customerId: string): Promise<void>
  /** Opens the page where a customer changes plan or card, or cancels, and gives its URL. */
  openPortal(customerId: string, returnUrl: string): Promise<string>
  /** Every subscription of a customer that is not over, as it stands now. */
  subscriptionsOf(customerId: string): Promise<readonly Subscription[]>
  /** Ends a subscription at once; one that is over stays so. */
  cancel(subscriptionId: string): Promise<void>
  /** @throws WebhookRefused */
  readWebhook(rawBody: Uint8Array, signature: string, nowMs: number): BillingHint
}

/** What is known of an account's billing. */
export interface BillingRecord {
  readonly accountId: string
  /** Linked once and never changed. */
  readonly customerId: string | null
  /** The plan that its subscription grants, as last applied; null where it grants none. */
  readonly grantedPlanId: string | null
  /** The subscription that decides, as last read. */
  readonly subscription: Subscription | null
  /** When it was read. */
  readonly readAtMs: number | null
  /** When it is read again at the latest. */
  readonly checkAtMs: number
  /** Since when the account is given up: what is still subscribed is cancelled. */
  readonly closingSinceMs: number | null
}

/** What one read of a customer's subscriptions came to. */
export interface AppliedRead {
  readonly accountId: string
  /** From `takeRead`, before anything was read. */
  readonly read: number
  readonly subscription: Subscription | null
  /** The plan that is granted, null for none; undefined leaves what was granted before. */
  readonly grant: string | null | undefined
  /** The plan of accounts to whom nothing is granted any more. */
  readonly planWithoutGrant: string
  readonly nowMs: number
  readonly checkAtMs: number
  /** The event that led to it, noted in the same transaction. */
  readonly eventId: string | undefined
}

/** `changed` where the account was put on another plan, `stale` where a later read was applied before. */
export type ReadOutcome = 'changed' | 'unchanged' | 'stale'

/** What is kept of billing. Each write is one transaction; whatever changes a plan moves the revision (contract 3.11). */
export interface BillingStore {
  findBilling(accountId: string): Promise<BillingRecord | undefined>
  findBillingOf(customerId: string): Promise<BillingRecord | undefined>
  /** Links a customer unless the account has one, and gives the one that it has. */
  linkCustomer(accountId: string, customerId: string, checkAtMs: number): Promise<string>
  /** The number of a read that is about to begin: higher than that of every read that began before. */
  takeRead(accountId: string): Promise<number>
  /** Applies a read unless a later one was applied. Granting another plan puts the account on it. */
  applyRead(read: AppliedRead): Promise<ReadOutcome>
  /** Makes an account's next check due at `atMs` unless it is due earlier. */
  hastenCheck(accountId: string, atMs: number): Promise<void>
  /** Makes it due at `atMs`, be it later or earlier. */
  postponeCheck(accountId: string, atMs: number): Promise<void>
  /** Up to `limit` accounts whose check is due, oldest first; it is due again at `againAtMs`. */
  claimChecks(nowMs: number, againAtMs: number, limit: number): Promise<readonly BillingRecord[]>
  /** Marks an account as given up and its check as due; false where it was never linked. */
  beginClosing(accountId: string, nowMs: number): Promise<boolean>
  /** Forgets the billing of an account. */
  removeBilling(accountId: string): Promise<void>

  hasHandled(eventId: string): Promise<boolean>
  noteHandled(eventId: string, nowMs: number): Promise<void>
  /** Forgets at most `limit` events that were handled before `timeMs` and says how many. */
  deleteEventsBefore(timeMs: number, limit: number): Promise<number>

  /** False where the account has an open request. Of those that are decided the newest `maxKept` stay. */
  addUpgradeRequest(request: UpgradeRequest, maxKept: number, record: AuditRecord): Promise<boolean>
  findUpgradeRequest(id: string): Promise<UpgradeRequest | undefined>
  /** Newest first, at most `limit`; of one account or of all, open ones or all. */
  listUpgradeRequests(selection: UpgradeSelection): Promise<readonly UpgradeRequest[]>
  /** Decides an open request; approving puts the account on the plan. False where it is not open, or the account is gone. */
  decideUpgradeRequest(id: string, state: Exclude<UpgradeState, 'requested'>, record: AuditRecord): Promise<boolean>
}

export interface UpgradeSelection {
  readonly limit: number
  readonly accountId?: string
  readonly onlyOpen?: boolean
}
