import type { AuditDesk } from '../../accounts/audit-desk.ts'
import type { BackendControlStore } from '../../accounts/backend-ports.ts'
import type { AccountSearchStore } from '../../accounts/operator-ports.ts'
import type { RecentTroubles } from '../../accounts/recent-troubles.ts'
import type { StatusStore } from '../../accounts/status-ports.ts'
import type { SupportStore } from '../../accounts/support-ports.ts'
import type { BackendCondition, HourCount } from '../../domain/backend-condition.ts'
import type { FormatId } from '../../domain/format-id.ts'
import type { RouteAsker, RoutePlan, RouteQuestion } from '../../domain/route-plan.ts'

/** A configured backend as operators see it. */
export interface ConsoleBackend {
  readonly id: string
  /** The provider's name in the configuration. */
  readonly provider: string
  readonly model: string
  /** Undefined where the vendor's usual one is spoken. */
  readonly format: FormatId | undefined
  readonly simulated: boolean
  /** Whom it serves. */
  readonly serves: 'everybody' | 'managed' | 'one account'
}

/** What only the console works with: what it finds things by, and steers the running service with; app.ts gives it. */
export interface ConsoleDesk {
  readonly accounts: AccountSearchStore
  readonly audit: AuditDesk
  readonly backends: readonly ConsoleBackend[]
  readonly controls: BackendControlStore
  /** How a backend stands in this process. */
  condition(backendId: string): BackendCondition
  /** How it answered in this process. */
  lastHour(backendId: string): HourCount
  /** What went wrong within the last minutes. */
  readonly troubles: Pick<RecentTroubles, 'requests' | 'failures' | 'down'>
  /** Files and sockets that are open, and the limit; undefined where the system does not say. */
  openFiles(): Promise<{ readonly open: number; readonly limit: number } | undefined>
  /** Where a request would go. */
  planRoute(asker: RouteAsker, question: RouteQuestion): Promise<RoutePlan>
  /** Whether managed backends of a provider serve at this moment. */
  servesManaged(provider: string): boolean
  readonly incidents: Pick<StatusStore, 'addIncident' | 'addIncidentUpdate' | 'listIncidents'>
  readonly tickets: Pick<SupportStore, 'listTickets' | 'countTickets' | 'findTicket' | 'closeTicket'>
  /** The page that everybody sees is read anew: something on it was changed. */
  forgetStatus(): void
}
