import type { Account, StoredKey, Upstream } from '../domain/accounts.ts'
import type { AccountEmail, Session, SignInProof } from '../domain/identity.ts'

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

/** What a proof is recognised by: digests of its code, where it has one, and of its link's token. */
export interface ProofDigests {
  readonly code: string | null
  readonly link: string
}

/**
 * Who holds which email address and session. Nothing here concerns callers of the API, so none of it moves the revision;
 * `addAccountWithEmail` does.
 */
export interface IdentityStore {
  /** Adds an account and its first address in one transaction. False, and nothing written, where the address is taken. */
  addAccountWithEmail(account: Account, address: string): Promise<boolean>
  /** False where the address is taken, or the account has `maxEmails`. */
  addEmail(email: AccountEmail, maxEmails: number): Promise<boolean>
  findEmail(address: string): Promise<AccountEmail | undefined>
  /** In the order in which they were added. */
  listEmails(accountId: string): Promise<readonly AccountEmail[]>
  /** False where the account has no such address. */
  removeEmail(accountId: string, address: string): Promise<boolean>

  /** Keeps a proof, and forgets those that ended before `forgetBeforeMs`. */
  addProof(proof: SignInProof, digests: ProofDigests, forgetBeforeMs: number): Promise<void>
  findProof(proofId: string): Promise<SignInProof | undefined>
  findProofByLink(linkDigest: string): Promise<SignInProof | undefined>
  /** How many proofs were asked for an address since a moment, and when the first of them was. */
  countProofs(address: string, sinceMs: number): Promise<{ readonly count: number; readonly firstAtMs: number | null }>
  /**
   * Counts one try against a proof and uses it up where the code is right: of any number of tries at once exactly one can
   * be `used`. `refused` where it is unknown, used, over, or was tried `maxTries` times.
   */
  tryCode(proofId: string, codeDigest: string, maxTries: number, nowMs: number): Promise<'used' | 'wrong' | 'refused'>
  /** Uses a proof up by its link; undefined where it is unknown, used or over. */
  useLink(linkDigest: string, nowMs: number): Promise<SignInProof | undefined>

  /** Adds a session; where the account has `maxSessions` the one that was used longest ago ends. */
  addSession(session: Session, digest: string, maxSessions: number): Promise<void>
  findSession(digest: string): Promise<Session | undefined>
  touchSession(digest: string, nowMs: number): Promise<void>
  /** The one used last first. */
  listSessions(accountId: string): Promise<readonly Session[]>
  /** False where the account has none of that id. */
  removeSession(accountId: string, sessionId: string): Promise<boolean>
  removeSessions(accountId: string): Promise<void>
}
