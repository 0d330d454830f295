import type { Clock, Timer } from '../../runtime/clock.ts'
import type { ConnectionShare, ShareMember } from './connection-share.ts'
import { Connection, type CarriedCall, type ConnectionOwner } from './connection.ts'
import type { Connect } from './connector.ts'

/** How often idle connections that are too old to reuse are closed. */
const sweepEveryMs = 5_000

export interface PoolLimits {
  /** Maximum concurrent connections of one pool; at least 1. */
  readonly maxConnections: number
  /** Maximum calls that wait while all connections are busy. */
  readonly maxWaiting: number
  /** How long one of them waits at most. */
  readonly waitMs: number
}

/** A call as the pool sees it: `start` or `refuse` is called once, and `start` once more for a replay. */
export interface PooledCall extends CarriedCall {
  start(connection: Connection): void
  refuse(): void
}

/**
 * The connections to one origin with one credential: at most `maxConnections`, within the share of all pools, the most
 * recently used first, and a bounded queue with a deadline.
 */
export class Pool implements ConnectionOwner, ShareMember {
  readonly #connect: Connect
  readonly #share: ConnectionShare
  readonly #limits: PoolLimits
  readonly #clock: Clock
  readonly #onBug: (error: unknown) => void
  readonly #onEmpty: (pool: Pool) => void
  readonly #all = new Set<Connection>()
  readonly #idle: Connection[] = []
  readonly #waiting = new Map<PooledCall, Timer>()
  #sweeping: Timer | undefined
  /** Whether it accepts no new calls; running calls finish. */
  retired = false
  /** Used to find the least recently used pool. */
  lastUse = 0

  constructor(
    connect: Connect,
    share: ConnectionShare,
    limits: PoolLimits,
    clock: Clock,
    onBug: (error: unknown) => void,
    onEmpty: (pool: Pool) => void,
  ) {
    this.#connect = connect
    this.#share = share
    this.#limits = limits
    this.#clock = clock
    this.#onBug = onBug
    this.#onEmpty = onEmpty
    share.join(this)
  }

  /** Calls that have a connection or wait for one. */
  get open(): number {
    return this.#all.size - this.#idle.length + this.#waiting.size
  }

  /** Calls that wait for a connection. */
  get waiting(): number {
    return this.#waiting.size
  }

  get connections(): number {
    return this.#all.size
  }

  get idleConnections(): number {
    return this.#idle.length
  }

  take(call: PooledCall): void {
    const connection = this.#takeIdle() ?? this.#add()
    if (connection !== undefined) call.start(connection)
    else if (this.#waiting.size >= this.#limits.maxWaiting) call.refuse()
    else {
      const timer = this.#clock.after(this.#limits.waitMs, () => {
        if (this.#stopWaiting(call)) call.refuse()
      })
      this.#waiting.set(call, timer)
      this.#share.setWaiting(this, true)
    }
  }

  /** Gives the call a connection that no call has used, for its only replay. */
  takeFresh(call: PooledCall): void {
    const connection = this.#add()
    if (connection === undefined) this.take(call)
    else call.start(connection)
  }

  /** Removes a waiting call. */
  leave(call: PooledCall): void {
    this.#stopWaiting(call)
    this.#tellIfEmpty()
  }

  /** Takes back a connection whose call has ended and that is reusable. */
  release(connection: Connection): void {
    const neediest = this.#share.neediest()
    // Another pool must not wait until this one has no calls left.
    const isFair = neediest === undefined || neediest.connections >= this.connections
    const next = isFair ? this.#nextWaiting() : undefined
    if (next !== undefined) next.start(connection)
    else if (this.retired || neediest !== undefined) this.#close(connection)
    else {
      this.#idle.push(connection)
      this.#sweeping ??= this.#clock.after(sweepEveryMs, () => this.#sweep())
    }
  }

  /** Removes a closed connection, idle or not. */
  discard(connection: Connection): void {
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
    this.#remove(connection)
  }

  get wantsConnection(): boolean {
    return this.#waiting.size > 0 && this.#all.size < this.#limits.maxConnections
  }

  serveWaiting(): void {
    const connection = this.#add()
    if (connection === undefined) return
    this.#nextWaiting()?.start(connection)
  }

  closeIdle(): void {
    const connection = this.#idle.shift()
    if (connection !== undefined) this.#close(connection)
  }

  /** Accepts no further calls and closes idle connections; running and waiting calls finish. */
  retire(): void {
    this.retired = true
    while (this.#idle.length > 0) this.closeIdle()
    this.#share.leave(this)
    this.#sweeping?.cancel()
    this.#tellIfEmpty()
  }

  /** Closes everything immediately; running calls are notified. */
  destroy(): void {
    this.retired = true
    for (const call of this.#waiting.keys()) {
      this.#stopWaiting(call)
      call.refuse()
    }
    for (const connection of this.#all) connection.destroy()
  }

  /** The most recently used connection, unless its peer is about to close it: then all others are too old as well. */
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

  /** A new connection; undefined if the pool or all pools together have too many. */
  #add(): Connection | undefined {
    if (this.#all.size >= this.#limits.maxConnections || !this.#share.take()) return undefined
    const connection = new Connection(this.#connect, this, this.#clock, this.#onBug)
    this.#all.add(connection)
    return connection
  }

  /** Closes an idle connection that was already removed from the list. */
  #close(connection: Connection): void {
    connection.close()
    this.#remove(connection)
  }

  /** Gives the place of a closed connection back. */
  #remove(connection: Connection): void {
    if (!this.#all.delete(connection)) return
    this.#share.give()
    this.#tellIfEmpty()
    this.#share.serveWaiting()
  }

  #nextWaiting(): PooledCall | undefined {
    for (const call of this.#waiting.keys()) {
      this.#stopWaiting(call)
      return call
    }
    return undefined
  }

  /** False if the call does not wait. */
  #stopWaiting(call: PooledCall): boolean {
    this.#waiting.get(call)?.cancel()
    const waited = this.#waiting.delete(call)
    if (this.#waiting.size === 0) this.#share.setWaiting(this, false)
    return waited
  }

  #tellIfEmpty(): void {
    if (this.retired && this.#all.size === 0 && this.#waiting.size === 0) this.#onEmpty(this)
  }
}
