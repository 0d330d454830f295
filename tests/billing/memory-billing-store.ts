import type {
  AppliedRead,
  BillingRecord,
  BillingStore,
  ReadOutcome,
  UpgradeSelection,
} from '../../src/accounts/billing/ports.ts'
import type { AuditRecord } from '../../src/domain/audit.ts'
import type { UpgradeRequest, UpgradeState } from '../../src/domain/billing.ts'
import type { MemoryStore } from '../accounts/memory-store.ts'

interface Row extends BillingRecord {
  readonly reads: number
  readonly appliedRead: number
}

/** A BillingStore in memory, for simulations. The contract suite tests it like the database engines. */
export class MemoryBillingStore implements BillingStore {
  readonly #rows = new Map<string, Row>()
  readonly #handled = new Map<string, number>()
  #requests: UpgradeRequest[] = []
  readonly #accounts: MemoryStore
  /** The number of plan changes. */
  planChanges = 0

  constructor(accounts: MemoryStore) {
    this.#accounts = accounts
  }

  findBilling(accountId: string): Promise<BillingRecord | undefined> {
    return Promise.resolve(recordOf(this.#rows.get(accountId)))
  }
  findBillingOf(customerId: string): Promise<BillingRecord | undefined> {
    return Promise.resolve(recordOf([...this.#rows.values()].find((row) => row.customerId === customerId)))
  }
  linkCustomer(accountId: string, customerId: string, checkAtMs: number): Promise<string> {
    const row = this.#rows.get(accountId)
    if (row !== undefined) return Promise.resolve(row.customerId ?? customerId)
    const empty = { grantedPlanId: null, subscription: null, readAtMs: null, closingSinceMs: null }
    this.#rows.set(accountId, { accountId, customerId, ...empty, checkAtMs, reads: 0, appliedRead: 0 })
    return Promise.resolve(customerId)
  }
  takeRead(accountId: string): Promise<number> {
    const row = this.#rows.get(accountId)
    if (row === undefined) return Promise.reject(new Error('no billing'))
    this.#rows.set(accountId, { ...row, reads: row.reads + 1 })
    return Promise.resolve(row.reads + 1)
  }
  applyRead(read: AppliedRead): Promise<ReadOutcome> {
    if (read.eventId !== undefined) this.#handled.set(read.eventId, read.nowMs)
    const row = this.#rows.get(read.accountId)
    if (row === undefined || row.appliedRead >= read.read) return Promise.resolve('stale')
    const grantedPlanId = read.grant === undefined ? row.grantedPlanId : read.grant
    this.#rows.set(read.accountId, {
      ...row,
      appliedRead: read.read,
      grantedPlanId,
      subscription: read.subscription,
      readAtMs: read.nowMs,
      checkAtMs: read.checkAtMs,
    })
    if (grantedPlanId === row.grantedPlanId) return Promise.resolve('unchanged')
    const planId = grantedPlanId ?? read.planWithoutGrant
    const event = { type: 'account.plan_changed', accountId: read.accountId, planId } as const
    this.#setPlan(read.accountId, planId, { actor: { kind: 'system' }, atMs: read.nowMs, event })
    return Promise.resolve('changed')
  }
  async scheduleCheckNow(accountId: string, atMs: number): Promise<void> {
    const row = this.#rows.get(accountId)
    if (row !== undefined && row.checkAtMs > atMs) await this.postponeCheck(accountId, atMs)
  }
  postponeCheck(accountId: string, atMs: number): Promise<void> {
    const row = this.#rows.get(accountId)
    if (row !== undefined) this.#rows.set(accountId, { ...row, checkAtMs: atMs })
    return Promise.resolve()
  }
  claimChecks(nowMs: number, againAtMs: number, limit: number): Promise<readonly BillingRecord[]> {
    const due = [...this.#rows.values()]
      .filter((row) => row.checkAtMs <= nowMs)
      .sort((a, b) => a.checkAtMs - b.checkAtMs)
      .slice(0, limit)
    for (const row of due) this.#rows.set(row.accountId, { ...row, checkAtMs: againAtMs })
    return Promise.resolve(due.map((row) => recordOf(row)!))
  }
  beginClosing(accountId: string, nowMs: number): Promise<boolean> {
    const row = this.#rows.get(accountId)
    if (row === undefined) return Promise.resolve(false)
    this.#rows.set(accountId, { ...row, closingSinceMs: row.closingSinceMs ?? nowMs, checkAtMs: nowMs })
    return Promise.resolve(true)
  }
  removeBilling(accountId: string): Promise<void> {
    this.#rows.delete(accountId)
    return Promise.resolve()
  }
  hasHandled(eventId: string): Promise<boolean> {
    return Promise.resolve(this.#handled.has(eventId))
  }
  noteHandled(eventId: string, nowMs: number): Promise<void> {
    if (!this.#handled.has(eventId)) this.#handled.set(eventId, nowMs)
    return Promise.resolve()
  }
  deleteEventsBefore(timeMs: number, limit: number): Promise<number> {
    const old = [...this.#handled]
      .filter(([, atMs]) => atMs < timeMs)
      .sort(([, a], [, b]) => a - b)
      .slice(0, limit)
    for (const [id] of old) this.#handled.delete(id)
    return Promise.resolve(old.length)
  }
  addUpgradeRequest(request: UpgradeRequest, maxKept: number, record: AuditRecord): Promise<boolean> {
    const own = this.#requests.filter(({ accountId }) => accountId === request.accountId)
    if (own.some(({ state }) => state === 'requested')) return Promise.resolve(false)
    const old = own.toSorted(newestFirst).slice(maxKept)
    this.#accounts.records.push(record)
    this.#requests = [...this.#requests.filter((one) => !old.includes(one)), request]
    return Promise.resolve(true)
  }
  findUpgradeRequest(id: string): Promise<UpgradeRequest | undefined> {
    return Promise.resolve(this.#requests.find((request) => request.id === id))
  }
  listUpgradeRequests({ limit, accountId, onlyOpen }: UpgradeSelection): Promise<readonly UpgradeRequest[]> {
    const found = this.#requests
      .filter((request) => accountId === undefined || request.accountId === accountId)
      .filter(({ state }) => onlyOpen !== true || state === 'requested')
    return Promise.resolve(found.toSorted(newestFirst).slice(0, limit))
  }
  decideUpgradeRequest(id: string, state: Exclude<UpgradeState, 'requested'>, record: AuditRecord): Promise<boolean> {
    const request = this.#requests.find((one) => one.id === id)
    if (request?.state !== 'requested') return Promise.resolve(false)
    if (state === 'approved' && !this.#setPlan(request.accountId, request.planId, record)) return Promise.resolve(false)
    this.#requests = this.#requests.map((one) => (one.id === id ? { ...one, state, decidedAtMs: record.atMs } : one))
    return Promise.resolve(true)
  }

  #setPlan(accountId: string, planId: string, record: AuditRecord): boolean {
    if (!this.#accounts.accounts.some(({ id }) => id === accountId)) return false
    void this.#accounts.setPlan(accountId, planId, record)
    this.planChanges += 1
    return true
  }
}

function recordOf(row: Row | undefined): BillingRecord | undefined {
  if (row === undefined) return undefined
  const { reads: _, appliedRead: __, ...record } = row
  return record
}

function newestFirst(a: UpgradeRequest, b: UpgradeRequest): number {
  return b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : -1)
}
