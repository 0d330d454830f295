import type { BackendCondition } from '../../domain/backend-condition.ts'
import type { Backend } from '../ports.ts'
import type { CircuitBreakers } from './circuit-breakers.ts'

/** What stands behind one profile for one account just now. Every count but `connected` is a part of it. */
export interface BackendCount {
  readonly profile: string
  readonly connected: number
  /** Would be asked now: neither an open circuit breaker nor an operator keeps requests away. */
  readonly usable: number
  /** Not asked because the provider rejected the credential (contract 7.17). */
  readonly rejected: number
  /** Only pretend to be models. */
  readonly simulated: number
  /** Would be asked, and failed the last request that reached them, or often. */
  readonly failing: number
}

/** Counts without asking any backend: what is known already. */
export function countBackends(profile: string, backends: readonly Backend[], breakers: CircuitBreakers): BackendCount {
  const known = backends.map(({ id }) => breakers.availability(id))
  return {
    profile,
    connected: backends.length,
    usable: known.filter(({ usable }) => usable).length,
    rejected: known.filter((one) => !one.usable && one.reason === 'credentials').length,
    simulated: backends.filter(({ simulated }) => simulated).length,
    failing: backends.filter(({ id }, index) => known[index]!.usable && isFailing(breakers.condition(id))).length,
  }
}

/** It failed the last request, or often. */
function isFailing({ failures, isTroubled }: BackendCondition): boolean {
  return failures > 0 || isTroubled
}
