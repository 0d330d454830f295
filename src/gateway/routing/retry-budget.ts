/** Retries under way may be at most this share of the requests under way (contract 7.8). */
const share = 0.2
/** So many retries are always allowed: a share of few requests would keep a small service from failing over. */
const leastOfBackend = 64
const leastOfAccount = 16

interface OfAccount {
  active: number
  retrying: number
}

/**
 * Keeps failover from multiplying the load on backends that are in trouble already. A budget for each account and one for
 * each backend that retries go to: an account whose own backends hang takes nothing from others (contract 29.1).
 */
export class RetryBudget {
  #active = 0
  readonly #byAccount = new Map<string, OfAccount>()
  readonly #byBackend = new Map<string, number>()

  requestStarted(accountId: string): void {
    this.#active += 1
    const found = this.#byAccount.get(accountId)
    if (found === undefined) this.#byAccount.set(accountId, { active: 1, retrying: 0 })
    else found.active += 1
  }

  /** Every retry of the request has been given back before. */
  requestEnded(accountId: string): void {
    this.#active -= 1
    const found = this.#byAccount.get(accountId)
    if (found === undefined) return
    found.active -= 1
    if (found.active <= 0) this.#byAccount.delete(accountId)
  }

  /** Takes one retry of this account to this backend; false where too many are under way. */
  take(accountId: string, backendId: string): boolean {
    const account = this.#byAccount.get(accountId)
    const atBackend = this.#byBackend.get(backendId) ?? 0
    if (account !== undefined && account.retrying >= limitOf(account.active, leastOfAccount)) return false
    if (atBackend >= limitOf(this.#active, leastOfBackend)) return false
    if (account !== undefined) account.retrying += 1
    this.#byBackend.set(backendId, atBackend + 1)
    return true
  }

  giveBack(accountId: string, backendId: string): void {
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
