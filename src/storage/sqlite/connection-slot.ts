import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'

/** Maximum number of callers waiting for one connection. */
const maxWaiting = 1_000
/** How long a caller waits for the connection. */
const waitLimitMs = 5_000
const closePauseMs = 5

interface Waiter {
  readonly take: () => void
  readonly refuse: () => void
  readonly timer: NodeJS.Timeout
}

/** Gives one connection to one caller at a time, in order. The queue and each wait in it are bounded. */
export class ConnectionSlot {
  readonly #waiting = new Set<Waiter>()
  #isTaken = false
  #isClosed = false

  /**
   * Resolves when the caller owns the connection. @throws StoreUnavailable after 5 s, or if 1,000 callers are waiting
   */
  acquire(): Promise<void> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable('the database is closed'))
    if (!this.#isTaken) {
      this.#isTaken = true
      return Promise.resolve()
    }
    if (this.#waiting.size >= maxWaiting) {
      return Promise.reject(new StoreUnavailable('too many queries are waiting for the database'))
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const refuse = (): void => {
      this.#waiting.delete(waiter)
      clearTimeout(waiter.timer)
      reject(new StoreUnavailable('the database is busy'))
    }
    const waiter: Waiter = { take: resolve, refuse, timer: setTimeout(refuse, waitLimitMs) }
    this.#waiting.add(waiter)
    return promise
  }

  /** Rejects new callers once nobody holds or awaits the connection, or after 5 s. */
  async close(): Promise<void> {
    // Callers from this turn of the event loop come first.
    await nextTurn()
    const giveUpAtMs = performance.now() + waitLimitMs
    while ((this.#isTaken || this.#waiting.size > 0) && performance.now() < giveUpAtMs) await sleep(closePauseMs)
    this.#isClosed = true
    for (const { refuse } of this.#waiting) refuse()
  }

  release(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#isTaken = false
      return
    }
    this.#waiting.delete(next)
    clearTimeout(next.timer)
    next.take()
  }
}
