import type { KeyLimits } from '../domain/key-limits.ts'
import type { Plan } from '../domain/plans.ts'
import { readNetwork } from '../runtime/networks.ts'
import { AccountsError } from './accounts-error.ts'

/** Maximum number of addresses and networks per key (contract 3.13). */
export const maxNetworks = 50

/** Upper bounds for a key's limits: what the account itself may use. */
export interface LimitBounds {
  /** Ids of the configured profiles. */
  readonly profiles: readonly string[]
  readonly plan: Pick<Plan, 'requestsPerMinute'> | undefined
}

/**
 * Normalizes limits for storage: lists without duplicates, networks in canonical form. @throws AccountsError
 * `profiles_invalid`, `per_minute_invalid`, `addresses_invalid`
 */
export function checkLimits({ profiles, perMinute, addresses }: KeyLimits, bounds: LimitBounds): KeyLimits {
  return {
    profiles: profiles === null ? null : checkProfiles(profiles, bounds.profiles),
    perMinute: perMinute === null ? null : checkPerMinute(perMinute, bounds.plan?.requestsPerMinute ?? 0),
    addresses: addresses === null ? null : checkAddresses(addresses),
  }
}

function checkProfiles(profiles: readonly string[], known: readonly string[]): readonly string[] {
  const ids = known.filter((id) => profiles.includes(id))
  if (ids.length === 0 || profiles.some((id) => !known.includes(id))) throw new AccountsError('profiles_invalid')
  return ids
}

function checkPerMinute(perMinute: number, max: number): number {
  if (!Number.isSafeInteger(perMinute) || perMinute < 1 || perMinute > max)
    throw new AccountsError('per_minute_invalid')
  return perMinute
}

function checkAddresses(addresses: readonly string[]): readonly string[] {
  const networks = new Set<string>()
  for (const text of addresses) {
    const network = readNetwork(text)
    if (network === undefined) throw new AccountsError('addresses_invalid')
    networks.add(network)
  }
  if (networks.size === 0 || networks.size > maxNetworks) throw new AccountsError('addresses_invalid')
  return [...networks]
}
