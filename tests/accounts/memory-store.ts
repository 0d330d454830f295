import type { TransactionStore } from '../../src/accounts/declared/declared-ports.ts'
import type { AccountStore, KeyRotation } from '../../src/accounts/ports.ts'
import type { Account, StoredKey, Upstream } from '../../src/domain/accounts.ts'
import type { AuditRecord } from '../../src/domain/audit.ts'
import type { KeyLimits } from '../../src/domain/key-limits.ts'

/** An AccountStore in memory. `digests` contains the stored key digests, `records` the audit records. */
export class MemoryStore implements AccountStore {
  readonly accounts: Account[] = []
  keys: StoredKey[] = []
  upstreams: Upstream[] = []
  readonly digests = new Map<string, string>()
  readonly records: AuditRecord[] = []

  /** Every change has a record. */
  revision(): Promise<number> {
    return Promise.resolve(this.records.length)
  }
  /** See `DeclaredStore`. A failure undoes nothing. */
  async atRevision<Value>(
    revision: number,
    work: (store: TransactionStore) => Promise<Value>,
  ): Promise<Value | 'stale'> {
    return revision === this.records.length ? work(this as unknown as TransactionStore) : 'stale'
  }
  listSettings(): Promise<readonly []> {
    return Promise.resolve([])
  }

  addAccount(account: Account, record: AuditRecord): Promise<boolean> {
    if (this.accounts.some(({ name }) => name === account.name)) return Promise.resolve(false)
    this.accounts.push(account)
    this.records.push(record)
    return Promise.resolve(true)
  }
  findAccount(id: string): Promise<Account | undefined> {
    return Promise.resolve(this.accounts.find((account) => account.id === id))
  }
  countAccounts(): Promise<number> {
    return Promise.resolve(this.accounts.length)
  }

  listAccounts(limit: number): Promise<readonly Account[]> {
    return Promise.resolve(this.accounts.slice(0, limit))
  }
  setPlan(accountId: string, planId: string, record: AuditRecord): Promise<boolean> {
    return this.#setAccount(accountId, { planId }, record)
  }
  setSuspended(accountId: string, suspended: boolean, record: AuditRecord): Promise<boolean> {
    const stands = this.accounts.some((account) => account.id === accountId && account.suspended === suspended)
    return stands ? Promise.resolve(false) : this.#setAccount(accountId, { suspended }, record)
  }
  addKey(
    key: StoredKey,
    digest: string,
    maxKeys: number,
    record: AuditRecord | readonly AuditRecord[],
  ): Promise<boolean> {
    if (this.keys.filter((known) => known.accountId === key.accountId && known.state !== 'revoked').length >= maxKeys)
      return Promise.resolve(false)
    this.keys.push(key)
    this.digests.set(key.id, digest)
    this.records.push(...[record].flat())
    return Promise.resolve(true)
  }
  findKey(keyId: string): Promise<StoredKey | undefined> {
    return Promise.resolve(this.keys.find((key) => key.id === keyId))
  }
  findKeyByDigest(digest: string): Promise<StoredKey | undefined> {
    return Promise.resolve(this.keys.find((key) => this.digests.get(key.id) === digest))
  }
  listKeys(accountId: string, limit: number): Promise<readonly StoredKey[]> {
    return Promise.resolve(
      this.keys
        .filter((key) => key.accountId === accountId)
        .toReversed()
        .slice(0, limit),
    )
  }
  rotateKey(rotation: KeyRotation, record: AuditRecord): Promise<boolean> {
    const { oldKeyId, nowMs, endsAtMs, next, nextDigest } = rotation
    const old = this.keys.find((key) => key.id === oldKeyId)
    if (old?.state !== 'active') return Promise.resolve(false)
    const isOver = endsAtMs <= nowMs
    this.#replace({ ...old, state: isOver ? 'revoked' : 'retiring', endsAtMs, revokedAtMs: isOver ? nowMs : null })
    this.keys.push({ ...next, limits: old.limits })
    this.digests.set(next.id, nextDigest)
    this.records.push(record)
    return Promise.resolve(true)
  }
  limitKey(keyId: string, limits: KeyLimits, nowMs: number, record: AuditRecord): Promise<boolean> {
    const key = this.keys.find((known) => known.id === keyId)
    const isOver = key?.state === 'retiring' && key.endsAtMs !== null && key.endsAtMs <= nowMs
    if (key === undefined || key.state === 'revoked' || isOver) return Promise.resolve(false)
    this.#replace({ ...key, limits })
    this.records.push(record)
    return Promise.resolve(true)
  }
  revokeKey(keyId: string, nowMs: number, record: AuditRecord): Promise<boolean> {
    const key = this.keys.find((known) => known.id === keyId)
    if (key === undefined || key.state === 'revoked') return Promise.resolve(false)
    this.#replace({ ...key, state: 'revoked', revokedAtMs: nowMs })
    this.records.push(record)
    return Promise.resolve(true)
  }
  addUpstream(upstream: Omit<Upstream, 'position'>, maxUpstreams: number, record: AuditRecord): Promise<boolean> {
    const mine = this.upstreams.filter((known) => known.accountId === upstream.accountId)
    if (mine.length >= maxUpstreams) return Promise.resolve(false)
    this.upstreams.push({ ...upstream, position: mine.length })
    this.records.push(record)
    return Promise.resolve(true)
  }
  listUpstreams(accountId: string): Promise<readonly Upstream[]> {
    return Promise.resolve(this.upstreams.filter((upstream) => upstream.accountId === accountId))
  }
  removeUpstream(accountId: string, upstreamId: string, record: AuditRecord): Promise<boolean> {
    const before = this.upstreams.length
    this.upstreams = this.upstreams.filter((upstream) => upstream.accountId !== accountId || upstream.id !== upstreamId)
    if (this.upstreams.length === before) return Promise.resolve(false)
    this.records.push(record)
    return Promise.resolve(true)
  }
  #setAccount(accountId: string, changes: Partial<Account>, record: AuditRecord): Promise<boolean> {
    const index = this.accounts.findIndex((account) => account.id === accountId)
    if (index < 0) return Promise.resolve(false)
    this.accounts[index] = { ...this.accounts[index]!, ...changes }
    this.records.push(record)
    return Promise.resolve(true)
  }
  #replace(key: StoredKey): void {
    this.keys = this.keys.map((known) => (known.id === key.id ? key : known))
  }
}
