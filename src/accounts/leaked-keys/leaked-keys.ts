import type { StoredKey } from '../../domain/accounts.ts'
import { findKeys } from '../../domain/find-keys.ts'
import { keyDigest } from '../../domain/keys.ts'
import type { Secret } from '../../runtime/secret.ts'
import { AccountsError } from '../accounts-error.ts'
import type { AccountsDeps } from '../control-plane.ts'
import { revokeKey } from '../keys.ts'

/** A key of this service that was found leaked and is now revoked. */
export interface LeakedKey {
  readonly keyId: string
  readonly keyName: string
  /** `sk_svc_Ab12…9fQk` */
  readonly keyHint: string
  /** Untrusted text: an https URL to display, never to fetch. */
  readonly foundAt: string | undefined
}

/** What the owner of revoked keys is notified of: the keys, and where each was found, if reported. */
export interface LeakNotice {
  readonly accountId: string
  readonly keys: readonly LeakedKey[]
}

export interface LeakedKeysDeps {
  readonly accountsDeps: AccountsDeps
  /** The peppers that key digests may use, the current one first. */
  readonly peppers: readonly Secret[]
  /** Notifies one owner, with its own time limit. If it throws, the keys stay revoked. */
  readonly notify: (notice: LeakNotice) => Promise<void>
}

/** The outcome for one leaked key. `text` is the index of the text that contained it. */
export interface LeakOutcome {
  readonly text: number
  readonly state: 'revoked' | 'revoked_before' | 'unknown'
  /** Undefined for an unknown key. */
  readonly keyId: string | undefined
}

/** A text that may contain keys, and where it was found. */
export interface FoundText {
  readonly text: string
  readonly foundAt?: string | undefined
}

/**
 * Revokes every key of this service found in these texts, each in its own transaction with its audit event, and then
 * notifies each owner once. Possession of a key is enough to revoke it, so no other proof is required (contract 26.1,
 * 26.4). A key in several texts has the same outcome in each; texts without one have no outcome.
 */
export async function revokeLeakedKeys(
  deps: LeakedKeysDeps,
  texts: readonly FoundText[],
): Promise<readonly LeakOutcome[]> {
  const outcomes: LeakOutcome[] = []
  const known = new Map<string, Omit<LeakOutcome, 'text'>>()
  const leaked = new Map<string, LeakedKey[]>()
  try {
    for (const [text, { text: content, foundAt }] of texts.entries()) {
      for (const key of findKeys([content])) {
        const outcome = known.get(key) ?? (await revokeFound(deps, key, foundAt, leaked))
        known.set(key, outcome)
        outcomes.push({ text, ...outcome })
      }
    }
  } finally {
    // If the store fails midway, still notify the owners of the keys revoked so far.
    await Promise.allSettled(Array.from(leaked, ([accountId, keys]) => deps.notify({ accountId, keys })))
  }
  return outcomes
}

async function revokeFound(
  deps: LeakedKeysDeps,
  key: string,
  foundAt: string | undefined,
  leaked: Map<string, LeakedKey[]>,
): Promise<Omit<LeakOutcome, 'text'>> {
  const stored = await findStored(deps, key)
  if (stored === undefined) return { state: 'unknown', keyId: undefined }
  const { id: keyId, accountId, name: keyName, hint: keyHint } = stored
  try {
    await revokeKey(deps.accountsDeps, keyId, 'leaked')
  } catch (error) {
    if (!(error instanceof AccountsError)) throw error
    return { state: 'revoked_before', keyId }
  }
  leaked.set(accountId, [...(leaked.get(accountId) ?? []), { keyId, keyName, keyHint, foundAt }])
  return { state: 'revoked', keyId }
}

async function findStored({ accountsDeps, peppers }: LeakedKeysDeps, key: string): Promise<StoredKey | undefined> {
  for (const pepper of peppers) {
    const stored = await accountsDeps.store.findKeyByDigest(keyDigest(key, pepper))
    if (stored !== undefined) return stored
  }
  return undefined
}
