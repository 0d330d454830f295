/**
 * What one key may be used for, inside what its account may. Each is null where the key has no limit of that kind;
 * otherwise a list has at least one entry.
 */
export interface KeyLimits {
  /** Ids of profiles. */
  readonly profiles: readonly string[] | null
  /** Requests in any 60 s; the account's own limit holds besides. */
  readonly perMinute: number | null
  /** Where it may be used from: addresses and networks, as `readNetwork` writes them. */
  readonly addresses: readonly string[] | null
}

/** The limits of a key that may do all that its account may. */
export const noLimits: KeyLimits = { profiles: null, perMinute: null, addresses: null }

/** Whether a key has any limit of its own. */
export function isLimited({ profiles, perMinute, addresses }: KeyLimits): boolean {
  return profiles !== null || perMinute !== null || addresses !== null
}
