import type { StoredKey } from '../domain/accounts.ts'
import type { AuditEvent, RevocationReason } from '../domain/audit.ts'
import { isLimited, type KeyLimits, noLimits } from '../domain/key-limits.ts'
import { keyDigest, keyHint, mintKey, rotationOverlapsMs, type RotationOverlap } from '../domain/keys.ts'
import { idMinter } from '../runtime/ids.ts'
import type { Secret } from '../runtime/secret.ts'
import { AccountsError, checkName } from './accounts-error.ts'
import { auditRecord, type AccountsDeps } from './control-plane.ts'

/** Unrevoked keys per account (contract 19.9). */
export const maxKeysPerAccount = 100
/** Maximum number of keys in one listing, revoked ones included. */
export const maxListedKeys = 1000
/** More keys than any account has, so that revoking all keys misses none. */
const maxKeysEver = 1_000_000
/** How long the old key works after a rotation by default (contract 3.9). */
export const defaultOverlap: RotationOverlap = '24h'

/** A new key. It can be shown only now (contract 3.5). */
export interface MintedKey {
  readonly key: Secret
  readonly stored: StoredKey
}

/**
 * Creates a key for an account; `limits` must come from `checkLimits`. @throws AccountsError `name_invalid`,
 * `account_unknown`, `key_limit`
 */
export async function createKey(
  deps: AccountsDeps,
  accountId: string,
  name: string,
  limits: KeyLimits = noLimits,
): Promise<MintedKey> {
  const checked = checkName(name)
  if ((await deps.store.findAccount(accountId)) === undefined) throw new AccountsError('account_unknown')
  return addKey(deps, mintKey(deps.random), accountId, checked, limits)
}

/** Stores a minted key. @throws AccountsError `key_limit` */
export async function addKey(
  deps: AccountsDeps,
  key: Secret,
  accountId: string,
  name: string,
  limits: KeyLimits = noLimits,
): Promise<MintedKey> {
  const stored = storedForm(deps, key, { accountId, name, limits })
  const digest = keyDigest(key.reveal(), deps.pepper)
  const records = [auditRecord(deps, { type: 'key.created', accountId, keyId: stored.id })]
  if (isLimited(limits)) records.push(auditRecord(deps, limitedEvent(stored, limits)))
  const added = await deps.store.addKey(stored, digest, maxKeysPerAccount, records)
  if (!added) throw new AccountsError('key_limit')
  return { key, stored }
}

/**
 * Replaces a key by a new one with the same name and limits; the old one works for `overlap` longer (contract 3.9).
 * @throws AccountsError `key_unknown`, `key_not_active`, `key_limit`
 */
export async function rotateKey(
  deps: AccountsDeps,
  keyId: string,
  overlap: RotationOverlap = defaultOverlap,
): Promise<MintedKey & { readonly endsAtMs: number }> {
  const old = await deps.store.findKey(keyId)
  if (old === undefined) throw new AccountsError('key_unknown')
  const nowMs = Math.floor(deps.clock.nowMs())
  const listed = await deps.store.listKeys(old.accountId, maxListedKeys)
  const working = listed.filter((key) => effectiveState(key, nowMs) !== 'revoked').length
  if (overlap !== 'now' && working >= maxKeysPerAccount) throw new AccountsError('key_limit')
  const key = mintKey(deps.random)
  const stored = storedForm(deps, key, old)
  const endsAtMs = nowMs + rotationOverlapsMs[overlap]
  const nextDigest = keyDigest(key.reveal(), deps.pepper)
  const subject = { accountId: old.accountId, keyId, nextKeyId: stored.id }
  const rotated = await deps.store.rotateKey(
    { oldKeyId: keyId, nowMs, endsAtMs, next: stored, nextDigest },
    auditRecord(deps, { type: 'key.rotated', ...subject, endsAtMs }),
  )
  if (!rotated) throw new AccountsError('key_not_active')
  return { key, stored, endsAtMs }
}

/**
 * Replaces a key's limits; running services apply them within a second. `limits` must come from `checkLimits`. @throws
 * AccountsError `key_unknown`, `key_already_revoked`
 */
export async function limitKey(deps: AccountsDeps, keyId: string, limits: KeyLimits): Promise<StoredKey> {
  const key = await deps.store.findKey(keyId)
  if (key === undefined) throw new AccountsError('key_unknown')
  const record = auditRecord(deps, limitedEvent(key, limits))
  if (!(await deps.store.limitKey(keyId, limits, record.atMs, record))) throw new AccountsError('key_already_revoked')
  return { ...key, limits }
}

/** Revokes a key permanently. @throws AccountsError `key_unknown`, `key_already_revoked` */
export async function revokeKey(
  deps: AccountsDeps,
  keyId: string,
  reason: RevocationReason = 'asked',
): Promise<StoredKey> {
  const key = await deps.store.findKey(keyId)
  if (key === undefined) throw new AccountsError('key_unknown')
  const record = auditRecord(deps, { type: 'key.revoked', accountId: key.accountId, keyId, reason })
  if (!(await deps.store.revokeKey(keyId, record.atMs, record))) throw new AccountsError('key_already_revoked')
  return key
}

/** Revokes every unrevoked key of an account and returns how many there were. */
export async function revokeEveryKey(deps: AccountsDeps, accountId: string): Promise<number> {
  const keys = await deps.store.listKeys(accountId, maxKeysEver)
  const working = keys.filter((key) => key.state !== 'revoked')
  for (const { id: keyId } of working) {
    const record = auditRecord(deps, { type: 'key.revoked', accountId, keyId, reason: 'asked' })
    // A key that was revoked concurrently counts as done.
    await deps.store.revokeKey(keyId, record.atMs, record)
  }
  return working.length
}

/** A key of this account. @throws AccountsError `key_unknown`, also for another account's key */
export async function findOwnKey(
  deps: Pick<AccountsDeps, 'store'>,
  accountId: string,
  keyId: string,
): Promise<StoredKey> {
  const key = await deps.store.findKey(keyId)
  if (key?.accountId !== accountId) throw new AccountsError('key_unknown')
  return key
}

/** A key's state now: a retiring key is revoked after its end time, any other key expires. */
export function effectiveState(key: StoredKey, nowMs: number): StoredKey['state'] | 'expired' {
  if (key.endsAtMs === null || nowMs < key.endsAtMs || key.state === 'revoked') return key.state
  return key.state === 'retiring' ? 'revoked' : 'expired'
}

/** Only counts: the addresses themselves do not belong in the log. */
function limitedEvent({ id, accountId }: StoredKey, { profiles, perMinute, addresses }: KeyLimits): AuditEvent {
  const counts = { profiles: profiles?.length ?? 0, perMinute: perMinute ?? 0, networks: addresses?.length ?? 0 }
  return { type: 'key.limited', accountId, keyId: id, ...counts }
}

function storedForm(
  deps: AccountsDeps,
  key: Secret,
  { accountId, name, limits }: Pick<StoredKey, 'accountId' | 'name' | 'limits'>,
): StoredKey {
  const nowMs = (): number => deps.clock.nowMs()
  return {
    id: idMinter('key_', nowMs, deps.random)(),
    accountId,
    name,
    hint: keyHint(key),
    state: 'active',
    endsAtMs: null,
    createdAtMs: Math.floor(nowMs()),
    revokedAtMs: null,
    limits,
  }
}
