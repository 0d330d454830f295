import type { StoredKey } from '../domain/accounts.ts'
import { keyDigest } from '../domain/keys.ts'
import { findKeys } from '../domain/leaked-keys.ts'
import type { Secret } from '../domain/secret.ts'
import type { ControlPlane } from './control-plane.ts'
import { revokeKey } from './keys.ts'
import { AccountsError } from './refusals.ts'

/** A key of ours that was found and is revoked now. */
export interface LeakedKey {
  readonly keyId: string
  readonly keyName: string
  /** `sk_svc_Ab12…9fQk` */
  readonly keyHint: string
  /** Somebody else's text: an https URL, to be shown and never fetched. */
  readonly foundAt: string | undefined
}

/** What the owner of revoked keys is told: which ones, and where each was found, if anybody said. */
export interface LeakNotice {
  readonly accountId: string
  readonly keys: readonly LeakedKey[]
}

export interface LeakedKeysNeeds {
  readonly plane: ControlPlane
  /** Under which keys may still be kept: the current one first. */
  readonly peppers: readonly Secret[]
  /** Tells one owner, within a time of its own. A throw leaves the keys revoked. */
  readonly notify: (notice: LeakNotice) => Promise<void>
}

/** What was done about one key that was found. `text` tells which of the given texts it stood in. */
export interface LeakOutcome {
  readonly text: number
  readonly state: 'revoked' | 'revoked_before' | 'unknown'
  /** Undefined for an unknown one. */
  readonly keyId: string | undefined
}

/** A text that may hold keys, and where it was found. */
export interface FoundText {
  readonly text: string
  readonly foundAt?: string | undefined
}

/**
 * Revokes every key of ours that stands in these texts, each in a transaction of its own with its event, and then tells
 * each owner once. Who has a key may end it, so nothing else is asked. A key in several texts has the same outcome in
 * each; of texts without a key of ours there is none.
 */
export async function revokeLeakedKeys(
  needs: LeakedKeysNeeds,
  texts: readonly FoundText[],
): Promise<readonly LeakOutcome[]> {
  const outcomes: LeakOutcome[] = []
  const known = new Map<string, Omit<LeakOutcome, 'text'>>()
  const leaked = new Map<string, LeakedKey[]>()
  try {
    for (const [text, { text: content, foundAt }] of texts.entries()) {
      for (const key of findKeys([content])) {
        const outcome = known.get(key) ?? (await revokeFound(needs, key, foundAt, leaked))
        known.set(key, outcome)
        outcomes.push({ text, ...outcome })
      }
    }
  } finally {
    // Where the store fails half-way, the owners of what is revoked by then are told all the same.
    await Promise.allSettled(Array.from(leaked, ([accountId, keys]) => needs.notify({ accountId, keys })))
  }
  return outcomes
}

async function revokeFound(
  needs: LeakedKeysNeeds,
  key: string,
  foundAt: string | undefined,
  leaked: Map<string, LeakedKey[]>,
): Promise<Omit<LeakOutcome, 'text'>> {
  const stored = await findStored(needs, key)
  if (stored === undefined) return { state: 'unknown', keyId: undefined }
  const { id: keyId, accountId, name: keyName, hint: keyHint } = stored
  try {
    await revokeKey(needs.plane, keyId, 'leaked')
  } catch (error) {
    if (!(error instanceof AccountsError)) throw error
    return { state: 'revoked_before', keyId }
  }
  leaked.set(accountId, [...(leaked.get(accountId) ?? []), { keyId, keyName, keyHint, foundAt }])
  return { state: 'revoked', keyId }
}

async function findStored({ plane, peppers }: LeakedKeysNeeds, key: string): Promise<StoredKey | undefined> {
  for (const pepper of peppers) {
    const stored = await plane.store.findKeyByDigest(keyDigest(key, pepper))
    if (stored !== undefined) return stored
  }
  return undefined
}
