import type { KeyRate } from '../../domain/account-meter.ts'
import type { StoredKey } from '../../domain/accounts.ts'
import { type KeyOwner, ServiceError } from '../../domain/errors.ts'
import { isLimited } from '../../domain/key-limits.ts'
import { Networks, plainAddress } from '../../runtime/networks.ts'

/** The limits of a key, prepared once per key for the checks that every request makes. */
export interface EnforcedLimits {
  /** Profile ids; undefined if the key may use every profile (contract 3.18). */
  readonly profiles: ReadonlySet<string> | undefined
  readonly rate: KeyRate | undefined
  /** Networks that the key may be used from. */
  readonly networks: Networks | undefined
}

/** Undefined if the key may do everything that its account may. */
export function enforcedLimits({ id, limits }: StoredKey): EnforcedLimits | undefined {
  if (!isLimited(limits)) return undefined
  const { profiles, perMinute, addresses } = limits
  return {
    profiles: profiles === null ? undefined : new Set(profiles),
    rate: perMinute === null ? undefined : { keyId: id, perMinute },
    networks: addresses === null ? undefined : new Networks(addresses),
  }
}

/**
 * Rejects a key that may not be used from an address. The error names the address that we saw, which is the caller's
 * own (contract 3.15).
 * @throws ServiceError `key_address_not_allowed`
 */
export function assertAddressAllowed({ networks }: EnforcedLimits, address: string, owner: KeyOwner): void {
  if (networks === undefined || networks.has(address)) return
  throw new ServiceError('key_address_not_allowed', {
    owner: { accountId: owner.accountId, keyId: owner.keyId },
    words: { address: plainAddress(address) ?? 'of this request' },
  })
}

/**
 * Rejects a profile that the key may not use; `what` is its name in the error (contract 3.16).
 * @throws ServiceError `key_profile_not_allowed`
 */
export function assertProfileAllowed({ profiles }: EnforcedLimits, id: string, what = id): void {
  if (profiles === undefined || profiles.has(id)) return
  const words = { what, profiles: [...profiles].join(', ') }
  throw new ServiceError('key_profile_not_allowed', { param: id === what ? 'model' : 'tools', words })
}
