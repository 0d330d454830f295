import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailable } from './store-unavailable.ts'

/** Callers that wait for one connection at once. */
const maxWaiting = 1_000
/** How long a caller waits for the connection. */
const waitLimitMs = 5_000
const closePauseMs = 5

interface Waiter {
  readonly take: () => void
  readonly refuse: () => void
  readonly timer: NodeJS.Timeout
}

/** Hands one connection to one caller at a time, in order. The queue is bounded, and so is each wait in it. */
export class ConnectionSlot {
  readonly #waiting = new Set<Waiter>()
  #isTaken = false
  #isClosed = false

  /** Resolves when the connection belongs to the caller. @throws StoreUnavailable after 5 s, or where 1,000 wait */
  acquire(): Promise<void> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable('the database is closed'))
    if (!this.#isTaken) {
      this.#isTaken = true
      return Promise.resolve()
    }
    if (this.#waiting.size >= maxWaiting) {
      return Promise.reject(new StoreUnavailable('too many queries wait for the database'))
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

  /** Refuses everyone from the moment in which nobody has the connection or waits for it, or from 5 s later. */
  async close(): Promise<void> {
    // Whoever asked in this turn of the loop comes first.
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
