/**
 * The limits of one key, in addition to those of its account. Null means no limit of that kind; lists are never empty.
 */
export interface KeyLimits {
  /** Ids of profiles. */
  readonly profiles: readonly string[] | null
  /** Requests in any 60 s. The account's own limit applies, too. */
  readonly perMinute: number | null
  /** The addresses and networks that may use the key, as `readNetwork` writes them. */
  readonly addresses: readonly string[] | null
}

/** No limits besides the account's. */
export const noLimits: KeyLimits = { profiles: null, perMinute: null, addresses: null }

/** Whether a key has any limit of its own. */
export function isLimited({ profiles, perMinute, addresses }: KeyLimits): boolean {
  return profiles !== null || perMinute !== null || addresses !== null
}
