/** Concurrent retries may be at most this share of concurrent requests (contract 7.8). */
const share = 0.2
/** This many retries are always allowed: a share of few requests would stop a small service from failing over. */
const leastOfBackend = 64
const leastOfAccount = 16
/** Maximum number of accounts kept that have no request. */
const maxIdleAccounts = 1024

interface OfAccount {
  active: number
  retrying: number
}

/**
 * Prevents failover from multiplying the load on troubled backends. One budget per account and one per backend that
 * retries go to, so an account whose own backends hang takes nothing from others (contract 29.1).
 */
export class RetryBudget {
  #active = 0
  readonly #byAccount = new Map<string, OfAccount>()
  #idleAccounts = 0
  readonly #byBackend = new Map<string, number>()

  requestStarted(accountId: string): void {
    this.#active += 1
    const found = this.#byAccount.get(accountId)
    if (found === undefined) this.#byAccount.set(accountId, { active: 1, retrying: 0 })
    else {
      if (found.active === 0) this.#idleAccounts -= 1
      found.active += 1
    }
  }

  /** Call after every retry of the request has been released. */
  requestEnded(accountId: string): void {
    this.#active -= 1
    const found = this.#byAccount.get(accountId)
    if (found === undefined) return
    found.active -= 1
    if (found.active > 0) return
    this.#idleAccounts += 1
    if (this.#idleAccounts > maxIdleAccounts) this.#forgetIdle()
  }

  /** Removed together: frequent deletion makes a map replace its table over and over (see `FairShare`). */
  #forgetIdle(): void {
    for (const [accountId, { active }] of this.#byAccount) if (active === 0) this.#byAccount.delete(accountId)
    this.#idleAccounts = 0
  }

  /** Takes one retry of this account to this backend; false if too many are running. */
  take(accountId: string, backendId: string): boolean {
    const account = this.#byAccount.get(accountId)
    const atBackend = this.#byBackend.get(backendId) ?? 0
    if (account !== undefined && account.retrying >= limitOf(account.active, leastOfAccount)) return false
    if (atBackend >= limitOf(this.#active, leastOfBackend)) return false
    if (account !== undefined) account.retrying += 1
    this.#byBackend.set(backendId, atBackend + 1)
    return true
  }

  release(accountId: string, backendId: string): void {
    const account = this.#byAccount.get(accountId)
    if (account !== undefined) account.retrying -= 1
    const atBackend = (this.#byBackend.get(backendId) ?? 0) - 1
    if (atBackend > 0) this.#byBackend.set(backendId, atBackend)
    else this.#byBackend.delete(backendId)
  }
}

function limitOf(active: number, least: number): number {
  return Math.max(least, Math.floor(active * share))
}
