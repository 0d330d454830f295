/** A pool as the share sees it. */
export interface ShareMember {
  readonly connections: number
  /** Whether calls wait for a connection that the pool itself may open. */
  readonly wantsConnection: boolean
  /** Opens a connection for the call that has waited longest. */
  serveWaiting(): void
  /** Closes the idle connection that was used least recently, and gives its place back. */
  closeIdle(): void
}

/** The places for connections that all pools share, so that their sum is bounded (contract 29.13). */
export class ConnectionShare {
  readonly #max: number
  #open = 0
  readonly #waiting = new Set<ShareMember>()
  /** The pools with idle connections, the least recently used first. */
  readonly #idle = new Set<ShareMember>()

  constructor(max: number) {
    this.#max = max
  }

  /** Takes a place, if need be from an idle connection of any pool. False if all connections are busy. */
  take(): boolean {
    if (this.#open >= this.#max) {
      const [unused] = this.#idle
      unused?.closeIdle()
    }
    if (this.#open >= this.#max) return false
    this.#open += 1
    return true
  }

  give(): void {
    this.#open -= 1
  }

  setWaiting(pool: ShareMember, isWaiting: boolean): void {
    if (isWaiting) this.#waiting.add(pool)
    else this.#waiting.delete(pool)
  }

  /** Notes that a connection of the pool became idle. */
  addIdle(pool: ShareMember): void {
    this.#idle.delete(pool)
    this.#idle.add(pool)
  }

  /** Notes that the pool has no idle connections. */
  removeIdle(pool: ShareMember): void {
    this.#idle.delete(pool)
  }

  /** Lets the pool with the fewest connections use a place that became free. */
  serveWaiting(): void {
    if (this.#open < this.#max) this.#findNeediest()?.serveWaiting()
  }

  /** The pool with the fewest connections that waits for a place; undefined if a place is free, or none waits. */
  neediest(): ShareMember | undefined {
    return this.#open < this.#max ? undefined : this.#findNeediest()
  }

  #findNeediest(): ShareMember | undefined {
    let neediest: ShareMember | undefined
    for (const pool of this.#waiting) {
      if (!pool.wantsConnection) continue
      if (neediest === undefined || pool.connections < neediest.connections) neediest = pool
    }
    return neediest
  }
}
