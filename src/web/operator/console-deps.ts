import type { AuditReviewer } from '../../accounts/audit/audit-reviewer.ts'
import type { BackendControlStore } from '../../accounts/backends/backend-ports.ts'
import type { AccountSearchStore } from '../../accounts/operators/operator-ports.ts'
import type { Traffic } from '../../accounts/status/live-traffic.ts'
import type { StatusStore } from '../../accounts/status/status-ports.ts'
import type { SupportStore } from '../../accounts/support/support-ports.ts'
import type { FormatId } from '../../domain/format-id.ts'
import type { RoutingCaller, RoutingPlan, RoutingQuestion } from '../../domain/routing-plan.ts'
import type { ServiceHealth } from '../../domain/service-health.ts'

/** A configured backend, as shown to operators. */
export interface ConsoleBackend {
  readonly id: string
  /** The provider's name in the configuration. */
  readonly provider: string
  readonly model: string
  /** Undefined for the vendor's default format. */
  readonly format: FormatId | undefined
  readonly simulated: boolean
  /** Which accounts it serves. */
  readonly serves: 'everybody' | 'managed' | 'one account'
}

/** Dependencies of the console: lookups and controls of the running service, composed in app.ts. */
export interface ConsoleDeps {
  readonly accounts: AccountSearchStore
  readonly audit: AuditReviewer
  readonly backends: readonly ConsoleBackend[]
  readonly controls: BackendControlStore
  /** The whole service: its nodes, its backends, and recent failures. */
  health(): Promise<ServiceHealth>
  /** Rates, errors, and times of the last minutes on this node, with all its workers. */
  traffic(): Promise<Traffic>
  /** Open files and sockets, and the limit; undefined if the system does not report them. */
  openFiles(): Promise<{ readonly open: number; readonly limit: number } | undefined>
  /** The route a request would take. */
  planRouting(caller: RoutingCaller, question: RoutingQuestion): Promise<RoutingPlan>
  /** Whether a provider's managed backends currently serve requests. */
  servesManaged(provider: string): boolean
  readonly incidents: Pick<StatusStore, 'addIncident' | 'addIncidentUpdate' | 'listIncidents'>
  readonly tickets: Pick<SupportStore, 'listTickets' | 'countTickets' | 'findTicket' | 'closeTicket'>
  /** Clears the cached status after a change. */
  forgetStatus(): void
}
