import type { Account, StoredKey, Upstream } from '../domain/accounts.ts'
import type { ChainLink, ChainPosition } from '../domain/audit-chain.ts'
import type { AuditEntry, AuditRecord } from '../domain/audit.ts'
import type { BucketCounters } from '../domain/budget-meter.ts'
import type { Budget } from '../domain/budgets.ts'
import type { CacheGroup } from '../domain/cache-usage.ts'
import type { Checkpoint } from '../domain/checkpoint.ts'
import type { AccountEmail, Passkey, Session, SignInProof } from '../domain/identity.ts'
import type { KeyLimits } from '../domain/key-limits.ts'
import type {
  ManagedAccessState,
  ManagedRequest,
  ManagedRequestState,
  ManagedAction,
  ResaleControl,
} from '../domain/managed-access.ts'
import type { RefusedHour, RefusedCount, RefusedSelection } from '../domain/refused-requests.ts'
import type { RequestRecord } from '../domain/requests.ts'
import type { SessionCost, SessionSelection } from '../domain/session-costs.ts'
import type { Ticket } from '../domain/tickets.ts'

/**
 * Storage of the control plane. Every write is one transaction, increments the revision that nodes poll, so that a
 * change reaches them within a second (contract 3.11), and appends `record` to the audit log; a write that returns
 * false writes nothing. Every read and write names the account it is for.
 */
export type AccountStore = AccountQueries & KeyQueries & UpstreamQueries

export interface AccountQueries {
  /** Returns false, and adds nothing, if another account has this name. */
  addAccount(account: Account, record: AuditRecord): Promise<boolean>
  findAccount(id: string): Promise<Account | undefined>
  countAccounts(): Promise<number>
  /** In order of creation, at most `limit`. */
  listAccounts(limit: number): Promise<readonly Account[]>
  /** False if the account is unknown. */
  setPlan(accountId: string, planId: string, record: AuditRecord): Promise<boolean>
  /** False if the account is unknown or already in that state. */
  setSuspended(accountId: string, suspended: boolean, record: AuditRecord): Promise<boolean>
}

export interface KeyQueries {
  /** False if the account already has `maxKeys` unrevoked keys. Several records are stored in their order. */
  addKey(
    key: StoredKey,
    digest: string,
    maxKeys: number,
    record: AuditRecord | readonly AuditRecord[],
  ): Promise<boolean>
  findKey(keyId: string): Promise<StoredKey | undefined>
  /** The key with this digest, whichever account it belongs to. */
  findKeyByDigest(digest: string): Promise<StoredKey | undefined>
  /** Newest first, at most `limit`. */
  listKeys(accountId: string, limit: number): Promise<readonly StoredKey[]>
  /** False if the old key is no longer active. */
  rotateKey(rotation: KeyRotation, record: AuditRecord): Promise<boolean>
  /** Replaces a key's limits. False if the key is unknown or revoked. */
  limitKey(keyId: string, limits: KeyLimits, nowMs: number, record: AuditRecord): Promise<boolean>
  /** False if the key is unknown or already revoked. */
  revokeKey(keyId: string, nowMs: number, record: AuditRecord): Promise<boolean>
}

/** Budgets of several accounts, with what they spent and hold. */
interface BudgetBooks {
  readonly budgets: readonly Budget[]
  readonly counters: readonly BucketCounters[]
}

/** Budgets and their counters (contract 46). */
export interface BudgetQueries {
  /** In the order in which they were set. */
  listBudgets(accountId: string): Promise<readonly Budget[]>
  /** Budgets that operators set, of all accounts, at most `limit`. */
  listOperatorBudgets(limit: number): Promise<readonly Budget[]>
  /**
   * Adds a budget, or gives the one with this id another limit. False if the account is unknown, or has `maxOfSetter`
   * others with the same `setBy`.
   */
  putBudget(budget: Budget, maxOfSetter: number, record: AuditRecord): Promise<boolean>
  /** False if the account has no budget with that id. */
  removeBudget(accountId: string, budgetId: string, record: AuditRecord): Promise<boolean>
  /** What all its budgets spent in buckets since a time, and what running requests hold. A bucket can be in it several times. */
  readBudgetSpending(accountId: string, sinceMs: number): Promise<readonly BucketCounters[]>
  /** The same of several accounts, with their budgets; those of an account are in the order in which they were set. */
  readBudgetBooks(accountIds: readonly string[], sinceMs: number): Promise<BudgetBooks>
  /** Deletes at most `limit` of the oldest counters from before a time; returns how many. */
  deleteSpendingBefore(timeMs: number, limit: number): Promise<number>
}

export interface UpstreamQueries {
  /** False if the account already has `maxUpstreams`. The store assigns the last position. */
  addUpstream(upstream: Omit<Upstream, 'position'>, maxUpstreams: number, record: AuditRecord): Promise<boolean>
  /** In the order in which they are tried. */
  listUpstreams(accountId: string): Promise<readonly Upstream[]>
  /** False if the account has no upstream with that id. */
  removeUpstream(accountId: string, upstreamId: string, record: AuditRecord): Promise<boolean>
}

/**
 * In one transaction, adds `next` with the old key's current limits, and lets the old key retire at `endsAtMs`, or
 * revokes it if that is now.
 */
export interface KeyRotation {
  readonly oldKeyId: string
  readonly nowMs: number
  readonly endsAtMs: number
  readonly next: StoredKey
  readonly nextDigest: string
}

/** Filters for audit log entries. */
interface AuditSelection {
  readonly limit: number
  readonly accountId?: string
  /** Only events of this type. */
  readonly type?: string
  /** Only entries before this one, for the next page. */
  readonly beforeSequence?: number
  /** Only entries from this one on. */
  readonly fromSequence?: number
}

/** A stored entry; the values next to it are the columns it is searched by. */
export interface StoredLink extends ChainLink {
  readonly sequence: number
  readonly accountId: string | null
}

/** The audit log: nothing in it is ever changed or deleted. */
export interface AuditStore {
  /** Appends an event that accompanies no other change. */
  appendAudit(record: AuditRecord): Promise<ChainPosition>
  /** Newest first. */
  listAudit(selection: AuditSelection): Promise<readonly AuditEntry[]>
  /** The last entry according to the head, which is stored next to the log. */
  auditHead(): Promise<ChainPosition>
  /** In order, after one sequence number. */
  readAudit(afterSequence: number, limit: number): Promise<readonly StoredLink[]>
  /** Does nothing if a checkpoint with this sequence number and key exists. */
  addCheckpoint(checkpoint: Checkpoint): Promise<void>
  /** Newest first. */
  listCheckpoints(limit: number): Promise<readonly Checkpoint[]>
  /** Proves that events can be appended, read back, and not changed, and leaves no trace. Rejects otherwise. */
  proveAudit(record: AuditRecord): Promise<void>
}

/** Stored data of managed access (contract 23). Writes follow the rules of `AccountStore`. */
export interface ManagedAccessStore {
  managedAccess(): Promise<ManagedAccessState>
  /** False if it is already in that state. */
  switchManagedAccess(on: boolean, record: AuditRecord): Promise<boolean>
  /** False if the provider has controls recorded that are not revoked. */
  recordResale(control: Omit<ResaleControl, 'revokedAtMs'>, record: AuditRecord): Promise<boolean>
  /** False if none are recorded. */
  revokeResale(provider: string, atMs: number, record: AuditRecord): Promise<boolean>
  /** False if the account has a requested or approved one, or `maxRequests` in total. */
  addManagedRequest(
    request: Pick<ManagedRequest, 'id' | 'accountId' | 'createdAtMs'>,
    maxRequests: number,
    record: AuditRecord,
  ): Promise<boolean>
  findManagedRequest(id: string): Promise<ManagedRequest | undefined>
  /** Newest first. */
  listManagedRequests(selection: ManagedSelection): Promise<readonly ManagedRequest[]>
  /** False if the request's state does not allow this step. */
  stepManagedRequest(id: string, step: ManagedAction, atMs: number, record: AuditRecord): Promise<boolean>
  /** Whether the account has an approved request. */
  hasManagedAccess(accountId: string): Promise<boolean>
}

/** Filters for managed access requests. */
interface ManagedSelection {
  readonly limit: number
  readonly accountId?: string
  readonly state?: ManagedRequestState
}

/** An email to one person, in plain text. */
export interface Mail {
  readonly to: string
  readonly subject: string
  readonly text: string
  /** The same if the email is sent again, so that the receiver can drop it: part of its `Message-ID`. */
  readonly eventId?: string
}

/** Hands an email to the mail server; resolves when the server has accepted it. @throws MailError if it did not */
export type SendMail = (mail: Mail) => Promise<void>

/** What identifies a proof: digests of its code, if it has one, and of its link's token. */
export interface ProofDigests {
  readonly code: string | null
  readonly link: string
  /** Digest of the network that requested it; absent if no network did. Only for counting, not for identification. */
  readonly network?: string
}

/**
 * Email addresses, passkeys, and sessions of accounts. Accounts and their addresses are written as in `AccountStore`,
 * including `record`; proofs and sessions change neither the revision nor the audit log.
 */
export type IdentityStore = EmailQueries & ProofQueries & PasskeyQueries & SessionQueries

export interface EmailQueries {
  /** Adds an account and its first address in one transaction. False, with nothing written, if the address is taken. */
  addAccountWithEmail(account: Account, address: string, record: AuditRecord): Promise<boolean>
  /** False if the address is taken, or the account has `maxEmails`. */
  addEmail(email: AccountEmail, maxEmails: number, record: AuditRecord): Promise<boolean>
  findEmail(address: string): Promise<AccountEmail | undefined>
  /** In the order in which they were added. */
  listEmails(accountId: string): Promise<readonly AccountEmail[]>
  /** False if the account does not have the address. */
  removeEmail(accountId: string, address: string, record: AuditRecord): Promise<boolean>
}

export interface ProofQueries {
  /** Stores a proof, and deletes those that expired before `forgetBeforeMs`. */
  addProof(proof: SignInProof, digests: ProofDigests, forgetBeforeMs: number): Promise<void>
  findProof(proofId: string): Promise<SignInProof | undefined>
  findProofByLink(linkDigest: string): Promise<SignInProof | undefined>
  /**
   * How many proofs were requested for an address, by a network, or both, since a time, and when the first one was.
   * With `upTo` only that proof and those stored before it.
   */
  countProofs(
    of: { readonly address?: string; readonly network?: string },
    sinceMs: number,
    upTo?: Pick<SignInProof, 'id' | 'createdAtMs'>,
  ): Promise<{ readonly count: number; readonly firstAtMs: number | null }>
  /**
   * Counts one attempt at a proof and consumes the proof if the code is correct: of any number of concurrent attempts
   * exactly one is `used`. `refused` if the proof is unknown, used, expired, or was tried `maxTries` times.
   */
  tryCode(proofId: string, codeDigest: string, maxTries: number, nowMs: number): Promise<'used' | 'wrong' | 'refused'>
  /** Consumes a proof by its link; undefined if it is unknown, used, or expired. */
  useLink(linkDigest: string, nowMs: number): Promise<SignInProof | undefined>
}

export interface PasskeyQueries {
  /** False if the passkey is already registered, or the account has `maxPasskeys`. */
  addPasskey(passkey: Passkey, maxPasskeys: number, record: AuditRecord): Promise<boolean>
  findPasskey(passkeyId: string): Promise<Passkey | undefined>
  /** In the order in which they were added. */
  listPasskeys(accountId: string): Promise<readonly Passkey[]>
  usePasskey(passkeyId: string, counter: number, nowMs: number): Promise<void>
  /** False if the account has none with that id. */
  removePasskey(accountId: string, passkeyId: string, record: AuditRecord): Promise<boolean>
  /** Consumes a challenge; false if it was used before. Deletes expired ones. */
  useChallenge(digest: string, expiresAtMs: number, nowMs: number): Promise<boolean>
}

export interface SessionQueries {
  /** Adds a session; beyond `maxSessions` the least recently used one ends. */
  addSession(session: Session, digest: string, maxSessions: number): Promise<void>
  findSession(digest: string): Promise<Session | undefined>
  touchSession(digest: string, nowMs: number): Promise<void>
  /** The most recently used first. */
  listSessions(accountId: string): Promise<readonly Session[]>
  /** False if the account has none with that id. */
  removeSession(accountId: string, sessionId: string): Promise<boolean>
  removeSessions(accountId: string): Promise<void>
}

/** Totals of requests that share all these values on one day (UTC). */
export interface UsageGroup {
  /** `2026-11-21` */
  readonly day: string
  readonly profile: string
  readonly keyId: string
  /** The backend of the last attempt; null if none was tried. */
  readonly backend: string | null
  /** Null if it was answered. */
  readonly errorCode: string | null
  readonly requests: number
  /** Units charged to the month. */
  readonly charged: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** Requests whose token counts are our own estimates. */
  readonly estimated: number
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
  readonly cost: GroupCost
}

/** Requests of one day, account, profile, and last backend. */
export interface CostGroup extends Pick<UsageGroup, 'day' | 'profile' | 'backend' | 'requests' | 'cost'> {
  readonly accountId: string
}

/** What the requests of a group cost: exact decimal US dollars (contract 42.1). */
interface GroupCost {
  readonly usd: string
  /** What caching saved; negative if writes cost more than reads saved. */
  readonly savedUsd: string
  /** How many requests have a known cost; the others are not in the sums. */
  readonly priced: number
}

/** Filters for an account's requests. */
export interface ActivitySelection {
  readonly limit: number
  readonly outcome?: 'answered' | 'failed'
  readonly profile?: string
  readonly keyId?: string
  readonly session?: string
  /** Epoch milliseconds; the end is not included. */
  readonly fromMs?: number
  readonly untilMs?: number
  /** Only requests before this one, for the next page. */
  readonly beforeId?: string
}

/** Days that begin in `[fromMs, untilMs)`; at most `maxPerDay` requests per day are counted. */
interface UsageSelection {
  readonly fromMs: number
  readonly untilMs: number
  readonly maxPerDay: number
  /** Only requests of this session, or with this key. */
  readonly session?: string | undefined
  readonly keyId?: string | undefined
}

/** The requests whose caches are added up: from whole days in `[fromMs, untilMs)`. */
export interface CacheSelection {
  readonly accountId?: string
  readonly fromMs: number
  readonly untilMs: number
}

/** What the ledger recorded about an account's requests, for that account only. */
export type ActivityStore = ActivityQueries & RefusedQueries

export interface ActivityQueries {
  addUpUsage(accountId: string, selection: UsageSelection): Promise<readonly UsageGroup[]>
  /** What requests of all accounts cost, on days that begin in `[fromMs, untilMs)`. */
  addUpCosts(selection: Omit<UsageSelection, 'session' | 'keyId'>): Promise<readonly CostGroup[]>
  /** What one session of the account cost; undefined if it has no request. At most 50,000 requests are counted. */
  findSessionCost(accountId: string, session: string): Promise<SessionCost | undefined>
  /** The most expensive sessions of days in `[fromMs, untilMs)`; at most 50,000 requests per day are counted. */
  addUpSessions(accountId: string, selection: SessionSelection): Promise<readonly SessionCost[]>
  /** Of one account, or of all without one; at most 50,000 requests per day are counted. */
  addUpCache(selection: CacheSelection): Promise<readonly CacheGroup[]>
  /** Newest first. Searches at most the newest `among` requests within the time range and cursor. */
  listActivity(accountId: string, selection: ActivitySelection, among: number): Promise<readonly RequestRecord[]>
  findActivity(accountId: string, requestId: string): Promise<RequestRecord | undefined>
}

export interface RefusedQueries {
  /** Totals by account and error, the latest first. */
  sumRefused(selection: RefusedSelection): Promise<readonly RefusedCount[]>
  /** Hour by hour, the latest first; those before `before` if it is given. */
  listRefusedHours(
    accountId: string,
    before: Pick<RefusedHour, 'hourMs' | 'code'> | undefined,
    limit: number,
  ): Promise<readonly RefusedHour[]>
}

/** Account data that its own pages do not show, and the deletion of all account data. */
export interface AccountDataStore extends Pick<AccountStore, 'findAccount'> {
  /** Units used per month, the latest first. */
  listUsedUnits(
    accountId: string,
    limit: number,
  ): Promise<readonly { readonly periodId: string; readonly used: number }[]>
  /** Codes and links requested by the account or for its addresses, the latest first. */
  listProofs(accountId: string, limit: number): Promise<readonly SignInProof[]>
  /** Its support tickets, filed while signed in or with one of its addresses, the latest first. */
  listOwnTickets(accountId: string, limit: number): Promise<readonly Ticket[]>
  /**
   * Deletes the account and every row about it except in the audit log, in one transaction; its subscriptions are
   * marked for cancellation. An account with many requests is suspended first, and most of its requests are deleted in
   * transactions of their own: after an error, call it again. False if the account is unknown.
   */
  deleteAccount(accountId: string, nowMs: number, record: AuditRecord): Promise<boolean>
}

/**
 * Stores the last checkpoint outside the database, so that somebody who can only write the database cannot remove it
 * (contract 25.5).
 */
export interface CheckpointStore {
  read(): Promise<Checkpoint | undefined>
  keep(checkpoint: Checkpoint): Promise<void>
}
