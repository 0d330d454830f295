/** Retries under way may be at most this share of all requests under way (contract 5.2). */
const share = 0.2
/** So many retries at once are always allowed: a share of few requests would keep a small service from failing over. */
const floor = 64

/** Keeps failover from multiplying the load when many backends fail at once. */
export class RetryBudget {
  #active = 0
  #retrying = 0

  requestStarted(): void {
    this.#active += 1
  }

  requestEnded(): void {
    this.#active -= 1
  }

  /** Takes leave for one request to go on to its next backends; false where too many already do. */
  take(): boolean {
    if (this.#retrying >= Math.max(floor, Math.floor(this.#active * share))) return false
    this.#retrying += 1
    return true
  }

  giveBack(): void {
    this.#retrying -= 1
  }
}
