import type { EventLog } from '../../domain/events.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { LoadShedder } from '../overload/load-shedder.ts'
import type { AllowedRequest, CallGrant } from '../ports.ts'
import type { BackendStatistics } from '../routing/backend-statistics.ts'
import type { CircuitBreakers } from '../routing/circuit-breakers.ts'
import type { HedgeBudget } from '../routing/hedge-budget.ts'
import type { RoutedRequest } from '../routing/open-candidates.ts'
import type { RetryBudget } from '../routing/retry-budget.ts'
import type { BackendRequestBody, BackendRequestDeps } from './backend-request.ts'
import type { ProviderErrors } from './provider-errors.ts'

/** One request whose backends are tried. */
export interface FailoverOptions extends RoutedRequest {
  readonly request: AllowedRequest
  /** Its grant for a body of so many bytes, if that is not the caller's. */
  readonly grantFor?: ((bytes: number) => CallGrant) | undefined
  readonly accountId: string
  /** The body that was already written for one of the backends. */
  readonly written: BackendRequestBody | undefined
  /** Time limit for the whole request, milliseconds. */
  readonly totalMs: number
}

export interface FailoverDeps extends BackendRequestDeps {
  readonly clock: Clock
  readonly breakers: CircuitBreakers
  readonly statistics: BackendStatistics
  /** From 0 to 1, for choosing among backends. Need not be unguessable. */
  readonly random: () => number
  readonly budget: RetryBudget
  /** Absent if no request is hedged. */
  readonly hedges?: HedgeBudget
  /** Absent if nothing is shed. */
  readonly shedder?: LoadShedder | undefined
  readonly log: EventLog
  /** Stores error messages of failing backends; undefined if nobody would read them. */
  readonly providerErrors?: ProviderErrors | undefined
}
