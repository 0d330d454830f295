import type { StoredKey } from '../domain/accounts.ts'
import { keyDigest } from '../domain/keys.ts'
import { findKeys } from '../domain/leaked-keys.ts'
import type { Secret } from '../domain/secret.ts'
import type { ControlPlane } from './control-plane.ts'
import { revokeKey } from './keys.ts'
import { AccountsError } from './refusals.ts'

/** What the owner of a revoked key is told: which key, when, and where it was found, if anybody said. */
export interface LeakNotice {
  readonly accountId: string
  readonly keyId: string
  readonly keyName: string
  /** `sk_svc_Ab12…9fQk` */
  readonly keyHint: string
  readonly revokedAtMs: number
  /** Somebody else's text: an https URL, to be shown and never fetched. */
  readonly foundAt: string | undefined
}

export interface LeakedKeysNeeds {
  readonly plane: ControlPlane
  /** Under which keys may still be kept: the current one first. */
  readonly peppers: readonly Secret[]
  /** Tells the owner. A throw leaves the key revoked, and is told by `notified`. */
  readonly notify: (notice: LeakNotice) => Promise<void>
}

/** What was done about one key that was found. `text` tells which of the given texts it stood in. */
export interface LeakOutcome {
  readonly text: number
  readonly state: 'revoked' | 'revoked_before' | 'unknown'
  /** Undefined for an unknown one. */
  readonly keyId: string | undefined
  /** Whether the owner could be told of it just now. */
  readonly notified: boolean
}

/** A text that may hold keys, and where it was found. */
export interface FoundText {
  readonly text: string
  readonly foundAt?: string | undefined
}

/**
 * Revokes every key of ours that stands in these texts, each in a transaction of its own with its event, and tells the
 * owners. Who has a key may end it, so nothing else is asked. Of texts without a key of ours there is no outcome.
 */
export async function revokeLeakedKeys(
  needs: LeakedKeysNeeds,
  texts: readonly FoundText[],
): Promise<readonly LeakOutcome[]> {
  const outcomes: LeakOutcome[] = []
  const seen = new Set<string>()
  for (const [index, { text, foundAt }] of texts.entries()) {
    for (const key of findKeys([text])) {
      if (seen.has(key)) continue
      seen.add(key)
      outcomes.push({ text: index, ...(await revokeFound(needs, key, foundAt)) })
    }
  }
  return outcomes
}

async function revokeFound(
  needs: LeakedKeysNeeds,
  key: string,
  foundAt: string | undefined,
): Promise<Omit<LeakOutcome, 'text'>> {
  const stored = await findStored(needs, key)
  if (stored === undefined) return { state: 'unknown', keyId: undefined, notified: false }
  const { id: keyId, accountId, name: keyName, hint: keyHint } = stored
  try {
    await revokeKey(needs.plane, keyId, 'leaked')
  } catch (error) {
    if (!(error instanceof AccountsError)) throw error
    return { state: 'revoked_before', keyId, notified: false }
  }
  const notice = { accountId, keyId, keyName, keyHint, revokedAtMs: needs.plane.clock.nowMs(), foundAt }
  const notified = await needs.notify(notice).then(
    () => true,
    () => false,
  )
  return { state: 'revoked', keyId, notified }
}

async function findStored({ plane, peppers }: LeakedKeysNeeds, key: string): Promise<StoredKey | undefined> {
  for (const pepper of peppers) {
    const stored = await plane.store.findKeyByDigest(keyDigest(key, pepper))
    if (stored !== undefined) return stored
  }
  return undefined
}
