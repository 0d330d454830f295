import type { Clock, Timer } from '../../runtime/clock.ts'
import { hourMs } from '../../runtime/durations.ts'
import { minuteMs } from '../../runtime/minute-log.ts'
import type { AlertChannel, AlertQueries, ClaimedDelivery } from './alert-ports.ts'

/** How long to wait before each further attempt, on average (contract 46.15). */
const waitsMs = [5_000, 30_000, 2 * minuteMs, 10 * minuteMs, hourMs] as const
/** Each wait is up to this share shorter or longer, so that messages that failed together are not repeated together. */
const jitter = 0.2
/** How long a process may take for one attempt. Afterwards another process makes the next one. */
const leaseMs = 2 * minuteMs
/** Less than the lease, so that its own process never makes an attempt twice at once. */
const attemptMs = 60_000
/** How often messages of other processes, and further attempts, are looked for. */
const pollMs = 5_000
/** How long a service that stops waits for attempts. Another process repeats those that it did not wait for. */
const closeMs = 5_000

/** An attempt failed. `reason` is a status or a code; `isFinal` if no further attempt can succeed. */
export class AlertNotSent extends Error {
  override readonly name = 'AlertNotSent'
  readonly reason: string
  readonly isFinal: boolean

  constructor(reason: string, { isFinal = false } = {}) {
    super(reason)
    this.reason = reason
    this.isFinal = isFinal
  }
}

/** One way to send messages. */
export interface AlertTransport {
  readonly channel: AlertChannel
  /** How many messages are sent at once, each of another account. */
  readonly slots: number
  /** @throws AlertNotSent */
  readonly send: (delivery: ClaimedDelivery) => Promise<void>
}

export interface AlertSenderDeps {
  readonly store: Pick<AlertQueries, 'claimDeliveries' | 'endAttempt'>
  readonly transports: readonly AlertTransport[]
  readonly clock: Clock
  /** The wall clock that all processes of this database share. */
  readonly nowMs: () => number
  /** From 0 to 1. */
  readonly random: () => number
  readonly onFailed: (error: unknown) => void
}

/**
 * Sends the messages about alerts, at least once each (contract 46.15): a process claims a message for a limited time, sends it, and
 * confirms that. If it dies in between, another process sends the message after that time. Every process does this.
 *
 * Each channel has its own slots, and each account at most one of them, so a slow receiver delays only its own account.
 */
export class AlertSender {
  readonly #deps: AlertSenderDeps
  readonly #queues: readonly ChannelQueue[]
  #timer: Timer | undefined
  #isClosed = false

  constructor(deps: AlertSenderDeps) {
    this.#deps = deps
    this.#queues = deps.transports.map((transport) => new ChannelQueue(transport, deps))
  }

  start(): void {
    this.wake()
    this.#timer = this.#deps.clock.after(pollMs, () => {
      if (!this.#isClosed) this.start()
    })
  }

  /** Looks for messages now. */
  wake(): void {
    if (!this.#isClosed) for (const queue of this.#queues) queue.fill()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    const ended = Promise.all(this.#queues.map((queue) => queue.close()))
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = this.#deps.clock.after(closeMs, resolve)
    await Promise.race([ended, late])
    timer.cancel()
  }
}

/** The messages of one channel. */
class ChannelQueue {
  readonly #transport: AlertTransport
  readonly #deps: AlertSenderDeps
  /** Attempts that are under way, by account. */
  readonly #open = new Map<string, Promise<void>>()
  #filling: Promise<void> | undefined
  #isAskedAgain = false
  #isClosed = false

  constructor(transport: AlertTransport, deps: AlertSenderDeps) {
    this.#transport = transport
    this.#deps = deps
  }

  /** Claims as many messages as there are free slots. */
  fill(): void {
    this.#isAskedAgain = true
    if (this.#isClosed || this.#filling !== undefined) return
    this.#filling = this.#claim()
      .catch((error: unknown) => this.#deps.onFailed(error))
      .finally(() => (this.#filling = undefined))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#filling
    await Promise.all(this.#open.values())
  }

  async #claim(): Promise<void> {
    const { channel, slots } = this.#transport
    while (this.#isAskedAgain && !this.#isClosed) {
      this.#isAskedAgain = false
      const limit = slots - this.#open.size
      if (limit <= 0) return
      const except = [...this.#open.keys()]
      const nowMs = this.#deps.nowMs()
      const claimed = await this.#deps.store.claimDeliveries({ channel, nowMs, leaseMs, limit, except })
      for (const delivery of claimed) this.#begin(delivery)
    }
  }

  #begin(delivery: ClaimedDelivery): void {
    const { accountId } = delivery
    const attempt = this.#attempt(delivery)
      .catch((error: unknown) => this.#deps.onFailed(error))
      .finally(() => {
        this.#open.delete(accountId)
        this.fill()
      })
    this.#open.set(accountId, attempt)
  }

  async #attempt(delivery: ClaimedDelivery): Promise<void> {
    const failure = await this.#send(delivery)
    const { attempt } = delivery
    const nowMs = this.#deps.nowMs()
    if (failure === undefined)
      return this.#deps.store.endAttempt(delivery, { state: 'delivered', result: 'delivered', nowMs, dueAtMs: null })
    const wait = failure.isFinal ? undefined : waitsMs[attempt - 1]
    const result = failure.reason
    if (wait === undefined)
      return this.#deps.store.endAttempt(delivery, { state: 'failed', result, nowMs, dueAtMs: null })
    const dueAtMs = nowMs + wait * (1 + jitter * (2 * this.#deps.random() - 1))
    return this.#deps.store.endAttempt(delivery, { state: 'waiting', result, nowMs, dueAtMs })
  }

  /** Why it was not sent; undefined if it was. */
  async #send(delivery: ClaimedDelivery): Promise<AlertNotSent | undefined> {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const timer = this.#deps.clock.after(attemptMs, () => reject(new AlertNotSent('timeout')))
    try {
      await Promise.race([this.#transport.send(delivery), late])
      return undefined
    } catch (error) {
      if (error instanceof AlertNotSent) return error
      // The store failed, for example. The next attempt may succeed.
      this.#deps.onFailed(error)
      return new AlertNotSent('not_sent')
    } finally {
      timer.cancel()
    }
  }
}
