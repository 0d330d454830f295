import type { Duplex } from 'node:stream'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import { FramedSocket } from './framed-socket.ts'
import { type Answer, type OwnerHealth, type Question, type Report, thrownError } from './owner-messages.ts'

/** How often the owner is asked for its health. */
const pollMs = 250
/** An owner that has not answered for this long does not answer anybody: its database counts as dead (contract 36.12). */
const leaseMs = 5_000
/** Questions without an answer at once. */
const maxCalls = 20_000

export interface AskOptions {
  /** Without an answer after this long, the question has failed for its caller. */
  readonly limitMs: number
  /** Receives an answer that came too late for the caller. */
  readonly onLate?: (value: unknown) => void
}

interface Pending {
  resolve(value: unknown): void
  reject(error: Error): void
  readonly limit: Timer
  readonly onLate: ((value: unknown) => void) | undefined
  isLate: boolean
}

/** A worker's connection to the process that owns the database. */
export class OwnerConnection {
  readonly #socket: FramedSocket
  readonly #clock: Clock
  readonly #calls = new Map<number, Pending>()
  #lastCall = 0
  #health: OwnerHealth = { isHealthy: false, queues: {} }
  /** False from a question for its health that got no answer in time until one that did. Pauses of this process do not count. */
  #isAnswering = true
  #poll: Timer | undefined
  #isClosed = false

  /** `onLost` is called once if the owner is gone. */
  constructor(socket: Duplex, maxMessageBytes: number, clock: Clock, onLost: () => void) {
    this.#clock = clock
    this.#socket = new FramedSocket(socket, maxMessageBytes, {
      onMessage: (message) => this.#receive(message as Answer),
      onBroken: () => {
        this.#close()
        onLost()
      },
    })
  }

  /** Resolves when the owner has answered for the first time. @throws StoreUnavailable */
  async start(): Promise<void> {
    await this.#askForHealth()
    this.#schedule()
  }

  /** Whether the owner can record requests, as it said last. */
  get isHealthy(): boolean {
    return !this.#isClosed && this.#health.isHealthy && this.#isAnswering
  }

  get queues(): OwnerHealth['queues'] {
    return this.#health.queues
  }

  /** @throws StoreUnavailable if the owner does not answer, MessageTooLarge, or the owner's error */
  ask<Value>(question: Question, { limitMs, onLate }: AskOptions): Promise<Value> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable('the process that owns the database has ended'))
    const isPoll = question.do === 'health'
    if ((!isPoll && !this.#isAnswering) || this.#socket.isFull || this.#calls.size >= maxCalls)
      return Promise.reject(new StoreUnavailable('the process that owns the database does not answer'))
    const call = ++this.#lastCall
    return new Promise<unknown>((resolve, reject) => {
      // Throws before anything is registered.
      if (question.do === 'store') this.#socket.sendValue({ ...question, call })
      else this.#socket.send({ ...question, call })
      const limit = this.#clock.after(limitMs, () => this.#giveUp(call))
      this.#calls.set(call, { resolve, reject, limit, onLate, isLate: false })
    }) as Promise<Value>
  }

  tell(report: Report): void {
    this.#socket.send(report)
  }

  /** Ends the connection after everything that was sent. */
  close(): void {
    this.#close()
    this.#socket.end()
  }

  #receive(answer: Answer): void {
    const pending = this.#calls.get(answer.call)
    if (pending === undefined) throw new TypeError('a reply without a request')
    this.#calls.delete(answer.call)
    pending.limit.cancel()
    if (pending.isLate) {
      if ('value' in answer) pending.onLate?.(answer.value)
    } else if ('value' in answer) pending.resolve(answer.value)
    else pending.reject(thrownError(answer.error))
  }

  #giveUp(call: number): void {
    const pending = this.#calls.get(call)
    if (pending === undefined) return
    pending.isLate = true
    pending.reject(new StoreUnavailable('the process that owns the database does not answer'))
  }

  async #askForHealth(): Promise<void> {
    try {
      this.#health = await this.ask<OwnerHealth>({ do: 'health' }, { limitMs: leaseMs })
      this.#isAnswering = true
    } catch (error) {
      this.#isAnswering = false
      throw error
    }
  }

  #schedule(): void {
    if (this.#isClosed) return
    this.#poll = this.#clock.after(pollMs, () => {
      // Without an answer, `isHealthy` becomes false by itself.
      this.#askForHealth().then(
        () => this.#schedule(),
        () => this.#schedule(),
      )
    })
  }

  #close(): void {
    this.#isClosed = true
    this.#poll?.cancel()
    for (const pending of this.#calls.values()) {
      pending.limit.cancel()
      pending.reject(new StoreUnavailable('the process that owns the database has ended'))
    }
    this.#calls.clear()
  }
}
