import { BoundedMap } from '../../runtime/bounded-map.ts'

/** Requests that may be hedged, as a share of an account's requests that could be (contract 7.30). */
const share = 0.05
/** An account can save up this many hedges. */
const mostSaved = 5
const maxAccounts = 10_000

/**
 * Limits second calls to a share of each account's requests, and so of all requests: an account starts without any, and
 * cannot use up what others saved.
 */
export class HedgeBudget {
  readonly #savedByAccount = new BoundedMap<string, number>(maxAccounts)

  /** A request began that might be hedged. */
  requestStarted(accountId: string): void {
    const saved = this.#savedByAccount.get(accountId) ?? 0
    this.#savedByAccount.set(accountId, Math.min(mostSaved, saved + share))
  }

  /** Takes one hedge; false if there is none. */
  take(accountId: string): boolean {
    const saved = this.#savedByAccount.get(accountId) ?? 0
    if (saved < 1) return false
    this.#savedByAccount.set(accountId, saved - 1)
    return true
  }
}
