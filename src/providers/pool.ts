import type { EventEmitter } from 'node:events'
import { Client } from 'undici'
import type { buildConnector, Dispatcher } from 'undici'
import type { Clock, Timer } from '../domain/clock.ts'

/** Idle connections are closed by us before the 60 s after which common load balancers close theirs. */
const keepAliveMs = 55_000
const maxHeaderBytes = 16 * 1024
const maxAnswerBytes = 64 * 1024 * 1024

export interface PoolLimits {
  /** Connections of one pool at the same time, at least 1. */
  readonly maxConnections: number
  /** Calls that wait for a connection when all are busy. */
  readonly maxWaiting: number
  /** How long one of them waits. */
  readonly waitMs: number
}

/** Why a call got no connection. */
export type PoolRefusal = 'full' | 'waited' | 'closed'

/** A call as the pool sees it: `start` or `refuse` is called once, `start` once more for a replay. */
export interface PooledCall extends Dispatcher.DispatchHandler {
  start(lane: Lane): void
  refuse(reason: PoolRefusal): void
}

/** One connection, or the place of one: it carries one call at a time. */
export class Lane {
  readonly client: Client
  busy = false
  /** Answers read since the connection was opened: above 0 the peer may have closed it in the meantime. */
  served = 0

  constructor(origin: string, connect: buildConnector.connector, pool: Pool, onBug: (error: unknown) => void) {
    this.client = new Client(origin, {
      connect,
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      maxHeaderSize: maxHeaderBytes,
      maxResponseSize: maxAnswerBytes,
      // The gateway's own timers rule (contract 5.5).
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    this.client.on('connect', () => {
      this.served = 0
    })
    this.client.on('disconnect', () => pool.disconnected(this))
    // undici says so when a handler throws where it can do nothing about it; its types do not know.
    const events: EventEmitter = this.client
    events.on('error', onBug)
  }
}

/**
 * The connections to one origin with one credential: at most `maxConnections`, the most recently used one first, and a
 * bounded queue with a deadline behind them. (undici's own pool walks its whole list for each call, its queue has no
 * bound, and it does not tell whether a connection was used before, which the replay must know.)
 */
export class Pool {
  readonly #origin: string
  readonly #connect: buildConnector.connector
  readonly #limits: PoolLimits
  readonly #clock: Clock
  readonly #onBug: (error: unknown) => void
  readonly #onEmpty: (pool: Pool) => void
  readonly #lanes = new Set<Lane>()
  readonly #idle: Lane[] = []
  readonly #waiting = new Map<PooledCall, Timer>()
  /** Whether it takes no new calls; those that run finish. */
  retired = false
  /** For finding the pool that was not used for longest. */
  lastUse = 0

  constructor(
    origin: string,
    connect: buildConnector.connector,
    limits: PoolLimits,
    clock: Clock,
    onBug: (error: unknown) => void,
    onEmpty: (pool: Pool) => void,
  ) {
    this.#origin = origin
    this.#connect = connect
    this.#limits = limits
    this.#clock = clock
    this.#onBug = onBug
    this.#onEmpty = onEmpty
  }

  /** Calls that have a connection or wait for one. */
  get open(): number {
    return this.#lanes.size - this.#idle.length + this.#waiting.size
  }

  get connections(): number {
    return this.#lanes.size
  }

  take(call: PooledCall): void {
    const lane = this.#idle.pop() ?? (this.#lanes.size < this.#limits.maxConnections ? this.#add() : undefined)
    if (lane !== undefined) this.#start(lane, call)
    else if (this.#waiting.size >= this.#limits.maxWaiting) call.refuse('full')
    else {
      const timer = this.#clock.after(this.#limits.waitMs, () => {
        if (this.#waiting.delete(call)) call.refuse('waited')
      })
      this.#waiting.set(call, timer)
    }
  }

  /** Gives the call a connection that no call has used: for the one replay. */
  takeFresh(call: PooledCall): void {
    if (this.#lanes.size < this.#limits.maxConnections) this.#start(this.#add(), call)
    else this.take(call)
  }

  /** Forgets a call that waits. */
  leave(call: PooledCall): void {
    this.#waiting.get(call)?.cancel()
    this.#waiting.delete(call)
    this.#tellIfEmpty()
  }

  /** The lane's call is over and its connection is good. */
  release(lane: Lane): void {
    lane.busy = false
    const next = this.#nextWaiting()
    if (next !== undefined) this.#start(lane, next)
    else if (this.retired) this.#remove(lane)
    else this.#idle.push(lane)
  }

  /** The lane's call is over and its connection is not to be used again. */
  discard(lane: Lane): void {
    lane.busy = false
    this.#remove(lane)
    const next = this.#nextWaiting()
    if (next !== undefined) this.#start(this.#add(), next)
  }

  /** Takes no further calls, closes what is idle, and lets the calls that run and wait finish. */
  retire(): void {
    this.retired = true
    for (const lane of this.#idle.splice(0)) this.#remove(lane)
    this.#tellIfEmpty()
  }

  /** Ends everything now; running calls are told that their connection is gone. */
  async destroy(): Promise<void> {
    this.retired = true
    for (const [call, timer] of this.#waiting) {
      timer.cancel()
      this.#waiting.delete(call)
      call.refuse('closed')
    }
    await Promise.all([...this.#lanes].map((lane) => lane.client.destroy()))
  }

  disconnected(lane: Lane): void {
    if (lane.busy) return
    const index = this.#idle.indexOf(lane)
    if (index < 0) return
    this.#idle.splice(index, 1)
    this.#remove(lane)
  }

  #start(lane: Lane, call: PooledCall): void {
    lane.busy = true
    call.start(lane)
  }

  #add(): Lane {
    const lane = new Lane(this.#origin, this.#connect, this, this.#onBug)
    this.#lanes.add(lane)
    return lane
  }

  #remove(lane: Lane): void {
    this.#lanes.delete(lane)
    // Graceful, because this may run inside the connection's own parser.
    lane.client.close(ignore)
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
    if (this.retired && this.#lanes.size === 0 && this.#waiting.size === 0) this.#onEmpty(this)
  }
}

/** Closing a connection that is closed already is no error to anyone. */
function ignore(): void {}
