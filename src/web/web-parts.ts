import type { PlanSales } from '../accounts/billing/billing-plane.ts'
import type { ControlPlane } from '../accounts/control-plane.ts'
import type { IdentityPlane } from '../accounts/identity.ts'
import type { OperatorIdentity } from '../accounts/operator-sessions.ts'
import type { LeakedKeysNeeds } from '../accounts/leaked-keys.ts'
import type { TakeScanningReport } from '../accounts/scanning-report.ts'
import type { SupportDesk } from '../accounts/support.ts'
import type { StatusBoard } from '../accounts/status-board.ts'
import type { ActivityStore, AuditStore, HoldingsStore, Mail, ManagedAccessStore, SendMail } from '../accounts/ports.ts'
import type { Account, Upstream } from '../domain/accounts.ts'
import type { Offer } from '../domain/billing.ts'
import type { Clock } from '../domain/clock.ts'
import type { EventLog } from '../domain/events.ts'
import type { ModelFacts } from '../domain/model-facts.ts'
import type { Plan } from '../domain/plans.ts'
import type { ProviderError } from '../domain/provider-error.ts'
import type { Profile } from '../domain/profiles.ts'
import type { PriceOf } from '../domain/request-cost.ts'
import type { RequestRecord } from '../domain/requests.ts'
import type { UsageSignals } from '../domain/usage.ts'
import type { Connection } from './visit.ts'
import type { Library } from './docs/library.ts'
import type { ConsoleDesk } from './operator/console-desk.ts'
import type { ManagedDesk } from './managed-desk.ts'
import type { RateLimiter } from './rate-limiter.ts'
import type { UpstreamDesk } from './upstream-desk.ts'

/** What one address may do; shared by every page. */
interface Limiters {
  /** Messages to support. Letters with codes are counted in the store. */
  readonly letters: RateLimiter
  /** Codes, links and keys that are tried. */
  readonly tries: RateLimiter
  /** Downloads of all that an account has, by account: they open every stored answer. */
  readonly downloads: RateLimiter
}

/** A backend that belongs to no single account, as everybody may see it. */
export interface ShownBackend {
  readonly id: string
  readonly provider: string
  /** Whether it only pretends to be a model. */
  readonly simulated: boolean
  readonly facts: ModelFacts
}

/** An answer that is kept for an account (contract 12.1), as it is listed. */
interface KeptAnswer {
  readonly id: string
  readonly previousId: string | undefined
  readonly createdAtMs: number
}

/** Answers that are kept for an account, for the account itself. */
interface KeptAnswers {
  /** Newest first; those behind `before` when it is given. */
  list(accountId: string, before: KeptAnswer | undefined, limit: number): Promise<readonly KeptAnswer[]>
  /** What was asked and answered; undefined where it is gone by now, or the key that sealed it is. */
  open(accountId: string, id: string): Promise<{ readonly response: unknown; readonly input: unknown } | undefined>
}

interface KeptConversation {
  readonly id: string
  readonly createdAtMs: number
  readonly lastUsedAtMs: number
}

/** Conversations that are stored. */
interface KeptConversations {
  /** Newest first; those behind `before` when it is given. */
  list(
    accountId: string,
    before: KeptConversation | undefined,
    limit: number,
  ): Promise<readonly (KeptConversation & { readonly bytes: number })[]>
  /** Metadata and items; undefined where it is gone by now, or the key that sealed it is. */
  open(accountId: string, id: string): Promise<{ readonly metadata: unknown; readonly items: unknown } | undefined>
}

/** What the pages work with; app.ts gives it. */
export interface WebParts {
  /** Where people reach the app, without a slash at the end. */
  readonly appUrl: string
  /** Where clients reach the API, with its `/v1`. */
  readonly baseUrl: string
  readonly mode: 'local' | 'production'
  /** Proxies of the operator's own in front of the app: so many entries at the end of `X-Forwarded-For` are believed. */
  readonly trustedProxies: number
  readonly plans: readonly Plan[]
  /** How accounts come to another plan. */
  readonly sales: PlanSales
  /** The id of the plan of new accounts. */
  readonly defaultPlan: string
  /** Undefined where there is no mail server and nothing that stands in for it. */
  readonly sendMail: SendMail | undefined
  /** Local mode without a mail server: the letters that were not sent, newest first. */
  readonly outbox: { list(): readonly (Mail & { readonly sentAtMs: number })[] } | undefined
  readonly limiters: Limiters
  /** The control plane for everybody; whoever visits is added for each call. */
  readonly control: Omit<ControlPlane, 'actor'>
  /** The counters of an account as they are enforced (contract 5.13); undefined where its plan is gone. */
  usageOf(account: Account): Promise<UsageSignals | undefined>
  /** When each key of an account was last used, by its id, as far back as its latest requests go. */
  lastUses(accountId: string): Promise<ReadonlyMap<string, number>>
  readonly activity: ActivityStore
  /** What an account's own backends said as they failed in one of its requests. */
  providerErrors(accountId: string, requestId: string): Promise<readonly ProviderError[]>
  /** What is kept of an account beside that, and the end of all of it. */
  readonly holdings: Omit<ControlPlane<HoldingsStore>, 'actor'>
  readonly records: Pick<AuditStore, 'listAudit'> & Pick<ManagedAccessStore, 'listManagedRequests'>
  readonly answers: KeptAnswers
  readonly conversations: KeptConversations
  readonly upstreams: UpstreamDesk
  readonly support: SupportDesk
  readonly managed: ManagedDesk
  /** Revokes keys that were found, in nobody's name, and tells their owners. */
  readonly leaks: LeakedKeysNeeds
  /** The same for what GitHub's secret scanning reports. */
  readonly takeScanningReport: TakeScanningReport
  /** How the service does. */
  readonly status: Pick<StatusBoard, 'read'>
  readonly profiles: readonly Profile[]
  readonly backends: readonly ShownBackend[]
  /** The configured prices of backends, and of an account's own upstreams. */
  prices(upstreams: readonly Upstream[]): PriceOf
  /** What plans cost where they are sold; empty where they are not, or it is unknown just now. */
  offers(): Promise<readonly Offer[]>
  /** The account's newest request, if any is kept. */
  latestRequest(accountId: string): Promise<RequestRecord | undefined>
  /** Has the API answer a chat of this account, as if a key of it had been sent. Never throws. */
  answerChat(account: Account, connection: Connection): void
  readonly library: Library
  /** The OpenAPI document of the API. */
  readonly openApi: object
  readonly identity: IdentityPlane
  /** Who operates the service, and who of them is signed in to the console. */
  readonly operators: OperatorIdentity
  /** What else only the console works with. */
  readonly desk: ConsoleDesk
  readonly clock: Clock
  readonly log: EventLog
  readonly mintRequestId: () => string
}
