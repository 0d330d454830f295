import type { PlanSales } from '../accounts/billing/billing-plane.ts'
import type { ControlPlane } from '../accounts/control-plane.ts'
import type { IdentityPlane } from '../accounts/identity.ts'
import type { Mail, SendMail } from '../accounts/ports.ts'
import type { Account } from '../domain/accounts.ts'
import type { Clock } from '../domain/clock.ts'
import type { EventLog } from '../domain/events.ts'
import type { Plan } from '../domain/plans.ts'
import type { UsageSignals } from '../domain/usage.ts'
import type { Library } from './docs/library.ts'
import type { RateLimiter } from './rate-limiter.ts'
import type { UpstreamDesk } from './upstream-desk.ts'

/** What one address may do; shared by every page. */
interface Limiters {
  /** Letters that are sent. */
  readonly letters: RateLimiter
  /** Codes, links and keys that are tried. */
  readonly tries: RateLimiter
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
  /** The counters of an account as they are enforced (contract 4.5); undefined where its plan is gone. */
  usageOf(account: Account): Promise<UsageSignals | undefined>
  /** When each key of an account was last used, by its id, as far back as its latest requests go. */
  lastUses(accountId: string): Promise<ReadonlyMap<string, number>>
  readonly upstreams: UpstreamDesk
  readonly library: Library
  /** The OpenAPI document of the API. */
  readonly openApi: object
  readonly identity: IdentityPlane
  readonly clock: Clock
  readonly log: EventLog
  readonly mintRequestId: () => string
}
