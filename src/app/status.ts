import { StatusBoard } from '../accounts/status/status-board.ts'
import { publicBackends, type Config } from '../config/config.ts'
import { errorName } from '../runtime/describe-bug.ts'
import type { Clock } from '../runtime/clock.ts'
import type { EventLog } from '../domain/events.ts'
import type { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import type { Readiness } from '../http/api.ts'
import type { Storage } from './storage.ts'

export interface StatusDeps {
  readonly storage: Storage
  readonly clock: Clock
  readonly log: EventLog
  readonly readiness: () => Readiness
  readonly breakers: Pick<CircuitBreakers, 'condition'>
}

/** The board behind the status page: told by the log, kept in the storage. */
export function openStatus(config: Config, { storage, clock, log, readiness, breakers }: StatusDeps): StatusBoard {
  const { profiles, backends } = config
  const reasons = (): readonly string[] => readiness().reasons
  return new StatusBoard({
    clock,
    store: storage.store,
    profiles,
    backends: publicBackends(config).map(({ id }) => id),
    configured: backends.map(({ id }) => id),
    condition: (id) => breakers.condition(id),
    reasons,
    onFailed: (error) => log({ event: 'store_failing', reason: errorName(error) }),
  })
}
