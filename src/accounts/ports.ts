import type { Account, StoredKey, Upstream } from '../domain/accounts.ts'
import type { Usage } from '../domain/conversation.ts'
import type { KeyLimits } from '../domain/key-limits.ts'
import type { AccountEmail, Passkey, Session, SignInProof } from '../domain/identity.ts'
import type { AuditEntry, AuditRecord } from '../domain/audit.ts'
import type { ChainLink, ChainPosition } from '../domain/audit-chain.ts'
import type { Checkpoint } from '../domain/checkpoint.ts'
import type {
  ManagedAccessState,
  ManagedRequest,
  ManagedRequestState,
  ManagedStep,
  ResaleControl,
} from '../domain/managed-access.ts'
import type { RefusedHour, RefusedCount, RefusedSelection } from '../domain/refused-requests.ts'
import type { RequestRecord } from '../domain/requests.ts'
import type { Ticket } from '../domain/tickets.ts'

/**
 * What the control plane keeps. Every write is one transaction, moves the revision that nodes poll, so that a change
 * reaches them within a second (contract 3.11), and appends `record` to the audit log; where it gives false nothing is
 * written. Every read and write names the account it is for.
 */
export interface AccountStore {
  addAccount(account: Account, record: AuditRecord): Promise<void>
  findAccount(id: string): Promise<Account | undefined>
  /** In the order of creation, at most `limit`. */
  listAccounts(limit: number): Promise<readonly Account[]>
  /** False where there is no such account. */
  setPlan(accountId: string, planId: string, record: AuditRecord): Promise<boolean>
  /** False where there is no such account, or where it stands so already. */
  setSuspended(accountId: string, suspended: boolean, record: AuditRecord): Promise<boolean>

  /** False where the account already has `maxKeys` keys that are not revoked. Several records are kept in their order. */
  addKey(
    key: StoredKey,
    digest: string,
    maxKeys: number,
    record: AuditRecord | readonly AuditRecord[],
  ): Promise<boolean>
  findKey(keyId: string): Promise<StoredKey | undefined>
  /** The key with this digest, whosever it is. */
  findKeyByDigest(digest: string): Promise<StoredKey | undefined>
  /** Newest first, at most `limit`. */
  listKeys(accountId: string, limit: number): Promise<readonly StoredKey[]>
  /** False where the old key is not active any more. */
  rotateKey(rotation: KeyRotation, record: AuditRecord): Promise<boolean>
  /** Puts these limits in the place of the key's. False where it is unknown or revoked. */
  limitKey(keyId: string, limits: KeyLimits, nowMs: number, record: AuditRecord): Promise<boolean>
  /** False where the key is unknown or was revoked before. */
  revokeKey(keyId: string, nowMs: number, record: AuditRecord): Promise<boolean>

  /** False where the account already has `maxUpstreams`. The store gives the position: behind all others. */
  addUpstream(upstream: Omit<Upstream, 'position'>, maxUpstreams: number, record: AuditRecord): Promise<boolean>
  /** In the order in which they are tried. */
  listUpstreams(accountId: string): Promise<readonly Upstream[]>
  /** False where the account has none of that id. */
  removeUpstream(accountId: string, upstreamId: string, record: AuditRecord): Promise<boolean>
}

/**
 * Adds `next` with the limits that the old key has by then, and sets that one retiring until `endsAtMs`, or revoked where
 * that is now, in one transaction.
 */
export interface KeyRotation {
  readonly oldKeyId: string
  readonly nowMs: number
  readonly endsAtMs: number
  readonly next: StoredKey
  readonly nextDigest: string
}

/** Which entries of the audit log are read. */
export interface AuditSelection {
  readonly limit: number
  readonly accountId?: string
  /** Only events of this kind. */
  readonly type?: string
  /** Only entries before this one: for the next page. */
  readonly beforeSequence?: number
  /** Only entries from this one on. */
  readonly fromSequence?: number
}

/** An entry as its row keeps it: the values beside it are those that it is searched by. */
export interface StoredLink extends ChainLink {
  readonly sequence: number
  readonly accountId: string | null
}

/** The audit log: nothing in it is ever changed or deleted. */
export interface AuditStore {
  /** Appends an event that comes with no other change. */
  appendAudit(record: AuditRecord): Promise<ChainPosition>
  /** Newest first. */
  listAudit(selection: AuditSelection): Promise<readonly AuditEntry[]>
  /** The last entry as the head says, which is kept beside the log. */
  auditHead(): Promise<ChainPosition>
  /** In their order, those behind one place. */
  readAudit(afterSequence: number, limit: number): Promise<readonly StoredLink[]>
  /** Does nothing where one of this place and key is there. */
  addCheckpoint(checkpoint: Checkpoint): Promise<void>
  /** Newest first. */
  listCheckpoints(limit: number): Promise<readonly Checkpoint[]>
  /** Proves that events are appended, read back and kept unchanged, and leaves nothing behind. Rejects where not. */
  proveAudit(record: AuditRecord): Promise<void>
}

/** Managed access as it is kept (contract 23). Writes are as those of `AccountStore`. */
export interface ManagedAccessStore {
  managedAccess(): Promise<ManagedAccessState>
  /** False where it stands so already. */
  switchManagedAccess(on: boolean, record: AuditRecord): Promise<boolean>
  /** False where controls are recorded for that provider and not revoked. */
  recordResale(control: Omit<ResaleControl, 'revokedAtMs'>, record: AuditRecord): Promise<boolean>
  /** False where none are recorded. */
  revokeResale(provider: string, atMs: number, record: AuditRecord): Promise<boolean>
  /** False where the account has one that is requested or approved, or `maxRequests` in all. */
  addManagedRequest(
    request: Pick<ManagedRequest, 'id' | 'accountId' | 'createdAtMs'>,
    maxRequests: number,
    record: AuditRecord,
  ): Promise<boolean>
  findManagedRequest(id: string): Promise<ManagedRequest | undefined>
  /** Newest first. */
  listManagedRequests(selection: ManagedSelection): Promise<readonly ManagedRequest[]>
  /** False where the request is not in a state from which this step may be taken. */
  stepManagedRequest(id: string, step: ManagedStep, atMs: number, record: AuditRecord): Promise<boolean>
  /** Whether the account has an approved request. */
  hasManagedAccess(accountId: string): Promise<boolean>
}

/** Which requests for managed access are read. */
export interface ManagedSelection {
  readonly limit: number
  readonly accountId?: string
  readonly state?: ManagedRequestState
}

/** A letter to one person, in plain text. */
export interface Mail {
  readonly to: string
  readonly subject: string
  readonly text: string
}

/** Takes a letter to the mail server. Resolves when that has it. @throws MailError where it could not be had */
export type SendMail = (mail: Mail) => Promise<void>

/** What a proof is recognised by: digests of its code, where it has one, and of its link's token. */
export interface ProofDigests {
  readonly code: string | null
  readonly link: string
  /** Of the network that asked for it; left out where nobody did. It recognises nothing: it is counted by. */
  readonly network?: string
}

/**
 * Who holds which email address and session. Accounts and their addresses are written as in `AccountStore`, `record`
 * included; proofs and sessions concern nobody else, and move neither the revision nor the audit log.
 */
export interface IdentityStore {
  /** Adds an account and its first address in one transaction. False, and nothing written, where the address is taken. */
  addAccountWithEmail(account: Account, address: string, record: AuditRecord): Promise<boolean>
  /** False where the address is taken, or the account has `maxEmails`. */
  addEmail(email: AccountEmail, maxEmails: number, record: AuditRecord): Promise<boolean>
  findEmail(address: string): Promise<AccountEmail | undefined>
  /** In the order in which they were added. */
  listEmails(accountId: string): Promise<readonly AccountEmail[]>
  /** False where the account has no such address. */
  removeEmail(accountId: string, address: string, record: AuditRecord): Promise<boolean>

  /** Keeps a proof, and forgets those that ended before `forgetBeforeMs`. */
  addProof(proof: SignInProof, digests: ProofDigests, forgetBeforeMs: number): Promise<void>
  findProof(proofId: string): Promise<SignInProof | undefined>
  findProofByLink(linkDigest: string): Promise<SignInProof | undefined>
  /**
   * How many proofs were asked for an address, by a network, or both, since a moment, and when the first of them was. With
   * `upTo` only that one and those that were kept before it.
   */
  countProofs(
    of: { readonly address?: string; readonly network?: string },
    sinceMs: number,
    upTo?: Pick<SignInProof, 'id' | 'createdAtMs'>,
  ): Promise<{ readonly count: number; readonly firstAtMs: number | null }>
  /**
   * Counts one try against a proof and uses it up where the code is right: of any number of tries at once exactly one can
   * be `used`. `refused` where it is unknown, used, over, or was tried `maxTries` times.
   */
  tryCode(proofId: string, codeDigest: string, maxTries: number, nowMs: number): Promise<'used' | 'wrong' | 'refused'>
  /** Uses a proof up by its link; undefined where it is unknown, used or over. */
  useLink(linkDigest: string, nowMs: number): Promise<SignInProof | undefined>

  /** False where the passkey is known already, or the account has `maxPasskeys`. */
  addPasskey(passkey: Passkey, maxPasskeys: number, record: AuditRecord): Promise<boolean>
  findPasskey(passkeyId: string): Promise<Passkey | undefined>
  /** In the order in which they were added. */
  listPasskeys(accountId: string): Promise<readonly Passkey[]>
  usePasskey(passkeyId: string, counter: number, nowMs: number): Promise<void>
  /** False where the account has none of that id. */
  removePasskey(accountId: string, passkeyId: string, record: AuditRecord): Promise<boolean>
  /** Uses a challenge up; false where it was used before. Forgets those that are over. */
  useChallenge(digest: string, expiresAtMs: number, nowMs: number): Promise<boolean>

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

/** Requests of one kind on one day (UTC), added up. */
export interface UsageGroup {
  /** `2026-11-21` */
  readonly day: string
  readonly profile: string
  readonly keyId: string
  /** The backend of the last attempt; null where none was tried. */
  readonly backend: string | null
  /** Null where it was answered. */
  readonly errorCode: string | null
  readonly requests: number
  /** Units of the month. */
  readonly charged: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** Requests whose tokens are our own estimate. */
  readonly estimated: number
  /** What their cost is estimated from. */
  readonly costBasis: CostBasis
}

/** What costs are added up from: requests with a known usage, those that were fused apart from the others. */
export interface CostBasis {
  /** Tokens of requests without a fusion, which have the price of the group's backend. */
  readonly plain: { readonly requests: number } & Pick<Usage, 'inputTokens' | 'outputTokens' | 'cachedTokens'>
  /** Requests with fusions: how many, of how many the cost is recorded, and the sum of those in US dollars. */
  readonly fused: { readonly requests: number; readonly priced: number; readonly usd: number }
}

/** Which of an account's requests are read. */
export interface ActivitySelection {
  readonly limit: number
  readonly outcome?: 'answered' | 'failed'
  readonly profile?: string
  readonly keyId?: string
  /** Epoch milliseconds; the end is not included. */
  readonly fromMs?: number
  readonly untilMs?: number
  /** Only those before this one: for the next page. */
  readonly beforeId?: string
}

/** What the ledger wrote about an account's requests, for the account itself. Nothing of another account is ever given. */
export interface ActivityStore {
  /** Days that begin in `[fromMs, untilMs)`; of one day `maxPerDay` requests at most are looked at. */
  addUpUsage(accountId: string, fromMs: number, untilMs: number, maxPerDay: number): Promise<readonly UsageGroup[]>
  /** Newest first. Of what the time and the cursor leave, the newest `among` are looked through at most. */
  listActivity(accountId: string, selection: ActivitySelection, among: number): Promise<readonly RequestRecord[]>
  findActivity(accountId: string, requestId: string): Promise<RequestRecord | undefined>
  /** Added up by account and error, the latest first. */
  sumRefused(selection: RefusedSelection): Promise<readonly RefusedCount[]>
  /** Hour by hour, the latest first; those before `before` where it is given. */
  listRefusedHours(
    accountId: string,
    before: Pick<RefusedHour, 'hourMs' | 'code'> | undefined,
    limit: number,
  ): Promise<readonly RefusedHour[]>
}

/** What is kept of an account beside what its own pages show, and the end of all of it. */
export interface HoldingsStore extends Pick<AccountStore, 'findAccount'> {
  /** Units used, month by month, the latest first. */
  listUsedUnits(
    accountId: string,
    limit: number,
  ): Promise<readonly { readonly periodId: string; readonly used: number }[]>
  /** Codes and links that were asked for it or for its addresses, the latest first. */
  listProofs(accountId: string, limit: number): Promise<readonly SignInProof[]>
  /** What it asked of support, signed in or by one of its addresses, the latest first. */
  listOwnTickets(accountId: string, limit: number): Promise<readonly Ticket[]>
  /**
   * Deletes the account and every row about it but the audit log's, in one transaction; what it subscribes is marked to
   * be cancelled. False where there is no such account.
   */
  deleteAccount(accountId: string, nowMs: number, record: AuditRecord): Promise<boolean>
}

/** Where the last checkpoint is kept outside the database: who can write only the database cannot make it forgotten. */
export interface CheckpointMemory {
  read(): Promise<Checkpoint | undefined>
  keep(checkpoint: Checkpoint): Promise<void>
}
