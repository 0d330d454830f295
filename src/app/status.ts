import { StatusBoard } from '../accounts/status/status-board.ts'
import { publicBackends } from '../config/config.ts'
import type { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import type { Readiness } from '../http/api.ts'
import { errorName } from '../runtime/describe-bug.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

export interface OpenStatusDeps {
  readonly storage: Storage
  readonly readiness: () => Readiness
  readonly breakers: Pick<CircuitBreakers, 'condition'>
}

/** The data of the status page. The caller passes it every logged event. */
export function openStatus(
  { config, clock, log }: Runtime,
  { storage, readiness, breakers }: OpenStatusDeps,
): StatusBoard {
  const { profiles, backends } = config
  return new StatusBoard({
    clock,
    store: storage.store,
    profiles,
    backends: publicBackends(config).map(({ id }) => id),
    configured: backends.map(({ id }) => id),
    condition: (id) => breakers.condition(id),
    reasons: () => readiness().reasons,
    onFailed: (error) => log({ event: 'store_failing', reason: errorName(error) }),
  })
}
