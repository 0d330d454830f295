import type { Clock } from '../../runtime/clock.ts'
import type { Backend } from '../ports.ts'

/** Retries that each request earns for its account (contract 7.31). */
const share = 0.1
/** Retries that an account may take before it has earned them, and the most that it saves. */
const leastOfAccount = 5
/** Unearned retries of all accounts together, between two times at which debts are forgiven. */
const leastOverall = 25
const forgivenEveryMs = 5 * 60_000
/** Maximum number of accounts kept that have no request. */
const maxIdleAccounts = 10_000
/** How many of them are removed at once if there are more. */
const forgottenAtOnce = 1_000

interface OfAccount {
  active: number
  /** Retries that the account has earned and not used; negative for those that it owes. */
  balance: number
  /** Which request of all accounts ended last for this one, counted from 1. */
  endedAt: number
}

/** A retry that was taken from the budget. */
export interface TakenRetry {
  /** The retry was answered, or not sent: it cost nothing. Call at most once. */
  refund(): void
}

/**
 * Prevents failover from multiplying the load while backends fail (contract 7.8, 7.31). A retry is paid by its
 * account, which earns a tenth of a retry with each request and can owe a few. What all accounts owe together is
 * limited too, except for retries to their own connections; what an account has earned is always its own, so no
 * account uses up the retries of another (contract 29.1).
 */
export class RetryBudget {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  #active = 0
  readonly #byAccount = new Map<string, OfAccount>()
  #idleAccounts = 0
  #ended = 0
  /** Unearned retries to shared backends since debts were forgiven, without those that were answered. */
  #lent = 0
  #forgivenMs: number

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
    this.#forgivenMs = clock.monotonicMs()
  }

  /** `isRetry`: the client has sent the request before, so it earns nothing (contract 7.32). */
  requestStarted(accountId: string, isRetry = false): void {
    this.#active += 1
    let account = this.#byAccount.get(accountId)
    if (account === undefined) this.#byAccount.set(accountId, (account = { active: 0, balance: 0, endedAt: 0 }))
    else if (account.active === 0) this.#idleAccounts -= 1
    account.active += 1
    if (!isRetry) earn(account, share)
  }

  requestEnded(accountId: string): void {
    this.#active -= 1
    const account = this.#byAccount.get(accountId)
    if (account === undefined) return
    account.active -= 1
    if (account.active > 0) return
    account.endedAt = this.#ended += 1
    this.#idleAccounts += 1
    if (this.#idleAccounts > maxIdleAccounts) this.#forgetOldest()
  }

  /** Whether an account with a running request could take a retry of this backend. */
  has(accountId: string, { owner }: Pick<Backend, 'owner'>): boolean {
    this.#forgiveDebts()
    const balance = this.#byAccount.get(accountId)?.balance ?? -Infinity
    if (balance >= 1) return true
    const isLeft = owner !== undefined || this.#lent < Math.max(leastOverall, this.#active * share)
    return isLeft && balance >= 1 - leastOfAccount
  }

  /** Takes one retry. Undefined if the account has none left. */
  take(accountId: string, backend: Pick<Backend, 'owner'>): TakenRetry | undefined {
    if (!this.has(accountId, backend)) return undefined
    const account = this.#byAccount.get(accountId)!
    const isLent = backend.owner === undefined && account.balance < 1
    account.balance -= 1
    if (isLent) this.#lent += 1
    const lentSince = this.#forgivenMs
    return {
      refund: () => {
        earn(account, 1)
        if (isLent && lentSince === this.#forgivenMs) this.#lent -= 1
      },
    }
  }

  #forgiveDebts(): void {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#forgivenMs < forgivenEveryMs) return
    this.#forgivenMs = nowMs
    this.#lent = 0
    for (const account of this.#byAccount.values()) account.balance = Math.max(0, account.balance)
  }

  /**
   * Removes the accounts that have had no request for the longest time. Many together: frequent deletion makes a map
   * replace its table over and over (see `FairShare`).
   */
  #forgetOldest(): void {
    const ends = new Float64Array(this.#idleAccounts)
    let idle = 0
    for (const { active, endedAt } of this.#byAccount.values()) if (active === 0) ends[idle++] = endedAt
    const firstKept = ends.sort()[forgottenAtOnce]!
    for (const [accountId, { active, endedAt }] of this.#byAccount)
      if (active === 0 && endedAt < firstKept) this.#byAccount.delete(accountId)
    this.#idleAccounts -= forgottenAtOnce
  }
}

function earn(account: OfAccount, retries: number): void {
  const most = Math.max(leastOfAccount, account.active * share)
  account.balance = Math.min(Math.max(most, account.balance), account.balance + retries)
}
