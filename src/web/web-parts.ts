import type { PlanSales } from '../accounts/billing/billing-plane.ts'
import type { ControlPlane } from '../accounts/control-plane.ts'
import type { IdentityPlane } from '../accounts/identity.ts'
import type { Clock } from '../domain/clock.ts'
import type { EventLog } from '../domain/events.ts'
import type { Plan } from '../domain/plans.ts'

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
  /** The control plane for everybody; whoever visits is added for each call. */
  readonly control: Omit<ControlPlane, 'actor'>
  readonly identity: IdentityPlane
  readonly clock: Clock
  readonly log: EventLog
  readonly mintRequestId: () => string
}
