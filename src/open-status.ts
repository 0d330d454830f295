import { StatusBoard, type BackendState } from './accounts/status-board.ts'
import type { Config } from './config/config.ts'
import type { Clock } from './domain/clock.ts'
import type { EventLog } from './domain/events.ts'
import type { Availability } from './gateway/routing/health.ts'
import type { Readiness } from './http/api.ts'
import type { Storage } from './open-storage.ts'

export interface StatusNeeds {
  readonly storage: Storage
  readonly clock: Clock
  readonly log: EventLog
  readonly readiness: () => Readiness
  /** How a backend does; asked from the first request on. */
  readonly availability: (backendId: string) => Availability
}

/** The board behind the status page: told by the log, kept in the storage. */
export function openStatus(
  { profiles, backends, mode }: Config,
  { storage, clock, log, readiness, availability }: StatusNeeds,
): StatusBoard {
  // A backend with a credential serves one account alone, and what that has is nobody else's business.
  const shown = backends.filter(({ credential, managed }) => mode === 'local' || managed || credential === undefined)
  const reasons = (): readonly string[] => readiness().reasons
  const stateOf = (id: string): BackendState => {
    const found = availability(id)
    if (found.usable) return 'usable'
    return found.reason === 'credentials' ? 'rejected' : 'cooling'
  }
  return new StatusBoard({
    clock,
    store: storage.store,
    profiles,
    backends: shown.map(({ id }) => id),
    stateOf,
    reasons,
    onFailed: (error) => log({ event: 'store_failing', reason: error instanceof Error ? error.name : 'unknown' }),
  })
}
