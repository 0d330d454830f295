import type { BackendState } from '../../domain/backend-state.ts'
import type { Backend } from '../ports.ts'
import type { CircuitBreakers } from './circuit-breakers.ts'

/** The current backends of one profile for one account. Every other count is a subset of `connected`. */
export interface BackendCount {
  readonly profile: string
  readonly connected: number
  /** Can be tried now: neither an open circuit breaker nor an operator's hold. */
  readonly usable: number
  /** Skipped because the provider rejected the credential (contract 7.17). */
  readonly rejected: number
  /** Only simulate models. */
  readonly simulated: number
  /** Can be tried, but failed its last request or fails often, on this node or on others. */
  readonly failing: number
}

/** Counts from known state, without calling a backend. `failsElsewhere`: whether other nodes have trouble with it. */
export function countBackends(
  profile: string,
  backends: readonly Backend[],
  breakers: CircuitBreakers,
  failsElsewhere: (backendId: string) => boolean,
): BackendCount {
  const known = backends.map(({ id }) => breakers.availability(id))
  return {
    profile,
    connected: backends.length,
    usable: known.filter(({ usable }) => usable).length,
    rejected: known.filter((one) => !one.usable && one.reason === 'credentials').length,
    simulated: backends.filter(({ simulated }) => simulated).length,
    failing: backends.filter(
      ({ id }, index) => known[index]!.usable && (isFailing(breakers.condition(id)) || failsElsewhere(id)),
    ).length,
  }
}

/** It failed its last request, or fails often. */
function isFailing({ failures, isTroubled }: BackendState): boolean {
  return failures > 0 || isTroubled
}
