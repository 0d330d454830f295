import type { Account, StoredKey, Upstream } from '../domain/accounts.ts'

/**
 * What the control plane keeps. Every write is one transaction and moves the revision that nodes poll, so that a
 * change reaches them within a second (contract 6). Every read and write names the account it is for.
 */
export interface AccountStore {
  addAccount(account: Account): Promise<void>
  findAccount(id: string): Promise<Account | undefined>
  /** In the order of creation, at most `limit`. */
  listAccounts(limit: number): Promise<readonly Account[]>
  /** False where there is no such account. */
  setPlan(accountId: string, planId: string): Promise<boolean>

  /** False where the account already has `maxKeys` keys that are not revoked; nothing is written then. */
  addKey(key: StoredKey, digest: string, maxKeys: number): Promise<boolean>
  findKey(keyId: string): Promise<StoredKey | undefined>
  /** Newest first, at most `limit`. */
  listKeys(accountId: string, limit: number): Promise<readonly StoredKey[]>
  /**
   * Adds `next` and sets the old key retiring until `endsAtMs`, or revoked where that is now, in one transaction.
   * False, and nothing written, where the old key is not active any more.
   */
  rotateKey(oldKeyId: string, nowMs: number, endsAtMs: number, next: StoredKey, nextDigest: string): Promise<boolean>
  /** False where the key is unknown or was revoked before. */
  revokeKey(keyId: string, nowMs: number): Promise<boolean>

  /** False where the account already has `maxUpstreams`. The store gives the position: behind all others. */
  addUpstream(upstream: Omit<Upstream, 'position'>, maxUpstreams: number): Promise<boolean>
  /** In the order in which they are tried. */
  listUpstreams(accountId: string): Promise<readonly Upstream[]>
  /** False where the account has none of that id. */
  removeUpstream(accountId: string, upstreamId: string): Promise<boolean>
}
