import type { AdminTokensDeps } from '../accounts/admin/admin-tokens.ts'
import type { WebhookDeps } from '../accounts/alerts/webhooks.ts'
import type { PlanSales } from '../accounts/billing/billing-deps.ts'
import type { BudgetDeps } from '../accounts/budgets.ts'
import type { AccountsDeps } from '../accounts/control-plane.ts'
import type { IdentityDeps } from '../accounts/identity/identity.ts'
import type { LeakedKeysDeps } from '../accounts/leaked-keys/leaked-keys.ts'
import type { HandleScanningReport } from '../accounts/leaked-keys/scanning-report.ts'
import type { OperatorIdentity } from '../accounts/operators/operator-sessions.ts'
import type {
  ActivityStore,
  AuditStore,
  AccountDataStore,
  Mail,
  ManagedAccessStore,
  SendMail,
} from '../accounts/ports.ts'
import type { StatusBoard } from '../accounts/status/status-board.ts'
import type { SupportDeps } from '../accounts/support/support.ts'
import type { UsageSignals } from '../domain/account-meter.ts'
import type { Account } from '../domain/accounts.ts'
import type { Offer } from '../domain/billing.ts'
import type { EventLog } from '../domain/events.ts'
import type { ModelFacts } from '../domain/model-facts.ts'
import type { Plan } from '../domain/plans.ts'
import type { Profile } from '../domain/profiles.ts'
import type { ProviderError } from '../domain/provider-error.ts'
import type { RequestRecord } from '../domain/requests.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AdminDeps } from './admin/admin-deps.ts'
import type { Library } from './docs/library.ts'
import type { HttpExchange } from './http/http-exchange.ts'
import type { ManagedAccessView } from './http/managed-access-view.ts'
import type { RateLimiter } from './http/rate-limiter.ts'
import type { UpstreamConnector } from './http/upstream-connector.ts'
import type { ConsoleDeps } from './operator/console-deps.ts'

/** Rate limits shared by all pages. */
interface Limiters {
  /** Messages to support. Emails with codes are counted in the store. */
  readonly mails: RateLimiter
  /** Attempts with codes, links, and keys. */
  readonly tries: RateLimiter
  /** Account data downloads, by account: each decrypts every stored response. */
  readonly downloads: RateLimiter
  /** Tests of webhooks, by account. */
  readonly webhookTests: RateLimiter
}

/** A shared backend, as shown publicly. */
export interface ShownBackend {
  readonly id: string
  readonly provider: string
  readonly model: string
  /** Whether it is simulated. */
  readonly simulated: boolean
  /** Whether it serves only accounts with managed access (contract 17.11). */
  readonly managed: boolean
  readonly facts: ModelFacts
}

/** A stored response of an account (contract 12.1), as listed. */
interface StoredAnswer {
  readonly id: string
  readonly previousId: string | undefined
  readonly createdAtMs: number
}

/** The stored responses of accounts. */
interface StoredAnswers {
  /** Newest first; only those after `before` in that order if it is given. */
  list(accountId: string, before: StoredAnswer | undefined, limit: number): Promise<readonly StoredAnswer[]>
  /** Input and response; undefined if it or its encryption key no longer exists. */
  open(accountId: string, id: string): Promise<{ readonly response: unknown; readonly input: unknown } | undefined>
}

interface StoredConversationSummary {
  readonly id: string
  readonly createdAtMs: number
  readonly lastUsedAtMs: number
}

/** Stored conversations. */
interface StoredConversations {
  /** Newest first; only those after `before` in that order if it is given. */
  list(
    accountId: string,
    before: StoredConversationSummary | undefined,
    limit: number,
  ): Promise<readonly (StoredConversationSummary & { readonly bytes: number })[]>
  /** Metadata and items; undefined if it or its encryption key no longer exists. */
  open(accountId: string, id: string): Promise<{ readonly metadata: unknown; readonly items: unknown } | undefined>
}

/** The dependencies of all pages, composed in app.ts. */
export interface WebDeps {
  /** The app's public URL, without a trailing slash. */
  readonly appUrl: string
  /** The API's base URL, including `/v1`. */
  readonly baseUrl: string
  readonly mode: 'local' | 'production'
  /**
   * The number of the operator's proxies in front of the app: that many entries at the end of `X-Forwarded-For` are
   * trusted.
   */
  readonly trustedProxies: number
  readonly plans: readonly Plan[]
  /** How accounts change plans. */
  readonly sales: PlanSales
  /** The plan id of new accounts. */
  readonly defaultPlan: string
  /** Undefined if there is neither a mail server nor a local outbox. */
  readonly sendMail: SendMail | undefined
  /** In local mode without a mail server: the emails that were not sent, newest first. */
  readonly outbox: { list(): readonly (Mail & { readonly sentAtMs: number })[] } | undefined
  readonly limiters: Limiters
  /** The control plane; the actor is added for each call. */
  readonly control: Omit<AccountsDeps, 'actor'>
  /** Budgets and their counters. */
  readonly budgets: Omit<BudgetDeps, 'actor'>
  /** Webhooks of accounts. `wake` has a new message sent at once. */
  readonly webhooks: Omit<WebhookDeps, 'actor' | 'clock'> & { readonly clock: Clock; wake(): void }
  /** The enforced counters of an account (contract 5.13); undefined if its plan no longer exists. */
  usageOf(account: Account): Promise<UsageSignals | undefined>
  /** When each key of an account was last used, by key id, from the account's latest requests. */
  lastUses(accountId: string): Promise<ReadonlyMap<string, number>>
  readonly activity: ActivityStore
  /** Error messages from an account's own backends for one of its requests. */
  providerErrors(accountId: string, requestId: string): Promise<readonly ProviderError[]>
  /** The rest of an account's data, and its deletion. */
  readonly accountData: Omit<AccountsDeps<AccountDataStore>, 'actor'>
  readonly records: Pick<AuditStore, 'listAudit'> & Pick<ManagedAccessStore, 'listManagedRequests'>
  readonly answers: StoredAnswers
  readonly conversations: StoredConversations
  readonly upstreams: UpstreamConnector
  readonly support: SupportDeps
  readonly managed: ManagedAccessView
  /** Revokes leaked keys and notifies their owners. */
  readonly leaks: LeakedKeysDeps
  /** The same for reports from GitHub secret scanning. */
  readonly handleScanningReport: HandleScanningReport
  /** The service status. */
  readonly status: Pick<StatusBoard, 'read'>
  readonly profiles: readonly Profile[]
  readonly backends: readonly ShownBackend[]
  /** The prices of plans; empty if plans are not sold or prices are unavailable. */
  offers(): Promise<readonly Offer[]>
  /** The account's newest recorded request, if any. */
  latestRequest(accountId: string): Promise<RequestRecord | undefined>
  /** Has the API answer a chat request of this account as if one of its keys had been sent. Never throws. */
  answerChat(account: Account, exchange: HttpExchange): void
  readonly library: Library
  /** The OpenAPI document of the API. */
  readonly openApi: object
  readonly identity: IdentityDeps
  /** The operators and their console sessions. */
  readonly operators: OperatorIdentity
  /** Dependencies that only the console uses. */
  readonly consoleDeps: ConsoleDeps
  /** The admin API; undefined if it is off. */
  readonly admin: AdminDeps | undefined
  /** Tokens of the admin API; the actor is added for each call. */
  readonly adminTokens: Omit<AdminTokensDeps, 'actor'>
  readonly clock: Clock
  readonly log: EventLog
  readonly mintRequestId: () => string
}
