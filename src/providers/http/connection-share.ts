/** A pool as the share sees it. */
export interface ShareMember {
  readonly connections: number
  /** How many of them are idle. */
  readonly idleConnections: number
  /** Higher for a later use. */
  readonly lastUse: number
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
  readonly #members = new Set<ShareMember>()

  constructor(max: number) {
    this.#max = max
  }

  /** Places that are taken: one for each open connection. */
  get taken(): number {
    return this.#open
  }

  join(pool: ShareMember): void {
    this.#members.add(pool)
  }

  /** The pool will have no idle connections anymore. */
  leave(pool: ShareMember): void {
    this.#members.delete(pool)
  }

  /** Takes a place, if need be from an idle connection of any pool. False if all connections are busy. */
  take(): boolean {
    if (this.#open >= this.#max) this.#leastRecentlyUsed()?.closeIdle()
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

  /** Lets the pool with the fewest connections use a place that became free. */
  serveWaiting(): void {
    if (this.#open < this.#max) this.#findNeediest()?.serveWaiting()
  }

  /** The pool with the fewest connections that waits for a place; undefined if a place is free, or none waits. */
  neediest(): ShareMember | undefined {
    return this.#open < this.#max ? undefined : this.#findNeediest()
  }

  /** Of the pools with idle connections. Searched only when all places are taken, so that no call updates an order. */
  #leastRecentlyUsed(): ShareMember | undefined {
    let oldest: ShareMember | undefined
    for (const pool of this.#members) {
      if (pool.idleConnections > 0 && (oldest === undefined || pool.lastUse < oldest.lastUse)) oldest = pool
    }
    return oldest
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
