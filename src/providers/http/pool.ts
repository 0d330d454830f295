import type { Clock, Timer } from '../../runtime/clock.ts'
import type { Connect } from './connector.ts'
import { Connection, type CarriedCall, type ConnectionOwner } from './connection.ts'

/** How often idle connections that will not be used any more are closed. */
const sweepEveryMs = 5_000

export interface PoolLimits {
  /** Connections of one pool at the same time, at least 1. */
  readonly maxConnections: number
  /** Calls that wait for a connection when all are busy. */
  readonly maxWaiting: number
  /** How long one of them waits. */
  readonly waitMs: number
}

/** A call as the pool sees it: `start` or `refuse` is called once, `start` once more for a replay. */
export interface PooledCall extends CarriedCall {
  start(connection: Connection): void
  refuse(): void
}

/**
 * The connections to one origin with one credential: at most `maxConnections`, the most recently used one first, and a
 * bounded queue with a deadline behind them.
 */
export class Pool implements ConnectionOwner {
  readonly #connect: Connect
  readonly #limits: PoolLimits
  readonly #clock: Clock
  readonly #onBug: (error: unknown) => void
  readonly #onEmpty: (pool: Pool) => void
  readonly #all = new Set<Connection>()
  readonly #idle: Connection[] = []
  readonly #waiting = new Map<PooledCall, Timer>()
  #sweeping: Timer | undefined
  /** Whether it takes no new calls; those that run finish. */
  retired = false
  /** For finding the pool that was not used for longest. */
  lastUse = 0

  constructor(
    connect: Connect,
    limits: PoolLimits,
    clock: Clock,
    onBug: (error: unknown) => void,
    onEmpty: (pool: Pool) => void,
  ) {
    this.#connect = connect
    this.#limits = limits
    this.#clock = clock
    this.#onBug = onBug
    this.#onEmpty = onEmpty
  }

  /** Calls that have a connection or wait for one. */
  get open(): number {
    return this.#all.size - this.#idle.length + this.#waiting.size
  }

  get connections(): number {
    return this.#all.size
  }

  take(call: PooledCall): void {
    const connection = this.#takeIdle() ?? (this.#all.size < this.#limits.maxConnections ? this.#add() : undefined)
    if (connection !== undefined) call.start(connection)
    else if (this.#waiting.size >= this.#limits.maxWaiting) call.refuse()
    else {
      const timer = this.#clock.after(this.#limits.waitMs, () => {
        if (this.#waiting.delete(call)) call.refuse()
      })
      this.#waiting.set(call, timer)
    }
  }

  /** Gives the call a connection that no call has used: for the one replay. */
  takeFresh(call: PooledCall): void {
    if (this.#all.size < this.#limits.maxConnections) call.start(this.#add())
    else this.take(call)
  }

  /** Forgets a call that waits. */
  leave(call: PooledCall): void {
    this.#waiting.get(call)?.cancel()
    this.#waiting.delete(call)
    this.#tellIfEmpty()
  }

  /** Its call is over and it is good for another. */
  release(connection: Connection): void {
    const next = this.#nextWaiting()
    if (next !== undefined) next.start(connection)
    else if (this.retired) this.#close(connection)
    else {
      this.#idle.push(connection)
      this.#sweeping ??= this.#clock.after(sweepEveryMs, () => this.#sweep())
    }
  }

  /** It has closed, whether it was idle or not. */
  discard(connection: Connection): void {
    this.#all.delete(connection)
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
    this.#tellIfEmpty()
    const next = this.#nextWaiting()
    if (next !== undefined) next.start(this.#add())
  }

  /** Takes no further calls, closes what is idle, and lets the calls that run and wait finish. */
  retire(): void {
    this.retired = true
    for (const connection of this.#idle.splice(0)) this.#close(connection)
    this.#sweeping?.cancel()
    this.#tellIfEmpty()
  }

  /** Ends everything now; running calls are told that their connection is gone. */
  destroy(): void {
    this.retired = true
    for (const [call, timer] of this.#waiting) {
      timer.cancel()
      this.#waiting.delete(call)
      call.refuse()
    }
    for (const connection of this.#all) connection.destroy()
  }

  /** The connection that was used last, unless its peer is about to close it; then so are all others. */
  #takeIdle(): Connection | undefined {
    const connection = this.#idle.pop()
    if (connection === undefined || this.#clock.monotonicMs() < connection.goodUntilMs) return connection
    this.#close(connection)
    return this.#takeIdle()
  }

  #sweep(): void {
    const nowMs = this.#clock.monotonicMs()
    for (const connection of this.#idle.filter(({ goodUntilMs }) => goodUntilMs <= nowMs)) {
      this.#idle.splice(this.#idle.indexOf(connection), 1)
      this.#close(connection)
    }
    this.#sweeping = this.#idle.length === 0 ? undefined : this.#clock.after(sweepEveryMs, () => this.#sweep())
  }

  #add(): Connection {
    const connection = new Connection(this.#connect, this, this.#clock, this.#onBug)
    this.#all.add(connection)
    return connection
  }

  /** Closes a connection that is idle, and not in the list of those any more. */
  #close(connection: Connection): void {
    this.#all.delete(connection)
    connection.close()
    this.#tellIfEmpty()
  }

  #nextWaiting(): PooledCall | undefined {
    for (const [call, timer] of this.#waiting) {
      timer.cancel()
      this.#waiting.delete(call)
      return call
    }
    return undefined
  }

  #tellIfEmpty(): void {
    if (this.retired && this.#all.size === 0 && this.#waiting.size === 0) this.#onEmpty(this)
  }
}
