import type { Duplex } from 'node:stream'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import { FramedSocket } from './framed-socket.ts'
import {
  type Answer,
  type OwnerHealth,
  type Question,
  type RequestAnswer,
  type RequestMessage,
  type RequestReport,
  type SignalCells,
  thrownError,
  type ToWorker,
} from './owner-messages.ts'

/** How often the owner is asked for its health. */
const pollMs = 250
/** An owner that has not answered for this long does not answer anybody: its database counts as dead (contract 36.12). */
const leaseMs = 5_000
/** Questions without an answer at once. */
const maxCalls = 20_000
/** How long a message that nobody waits for may wait for others to share a frame with. */
const lazyMs = 10

export interface AskOptions {
  /** Without an answer after this long, the question has failed for its caller. */
  readonly limitMs: number
  /** Receives an answer that came too late for the caller. */
  readonly onLate?: (value: unknown) => void
}

interface AdmitOptions {
  readonly limitMs: number
  /** Called with the number of a request that was admitted too late for its caller. */
  readonly onLate: (request: number) => void
}

/** A request that the owner admitted, and the account's figures then. */
export interface Admitted {
  readonly request: number
  readonly signals: SignalCells
}

/** What is told of records that wait for the disk. */
export interface WriteListener {
  /** One of the writes of a wait is on disk, or will not be. */
  onWritten(wait: number, isOnDisk: boolean): void
  /** No more will be told. */
  onClosed(): void
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
  #lazy: Timer | undefined
  #isClosed = false
  #listener: WriteListener | undefined

  /** `onLost` is called once if the owner is gone. */
  constructor(socket: Duplex, maxMessageBytes: number, clock: Clock, onLost: () => void) {
    this.#clock = clock
    this.#socket = new FramedSocket(socket, maxMessageBytes, {
      onMessage: (message) => this.#receive(message as ToWorker),
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

  /** Whether the owner can be asked. */
  get isReachable(): boolean {
    return !this.#isClosed && this.#isAnswering && !this.#socket.isFull
  }

  /** Sets who is told of writes. */
  listen(listener: WriteListener): void {
    this.#listener = listener
  }

  /** @throws StoreUnavailable if the owner does not answer, MessageTooLarge, or the owner's error */
  ask<Value>(question: Question, options: AskOptions): Promise<Value> {
    if (!this.#canAsk(question.do === 'health')) return this.#refuse()
    const call = ++this.#lastCall
    return new Promise<unknown>((resolve, reject) => {
      // Throws before anything is registered.
      if (question.do === 'store') this.#socket.sendValue({ ...question, call })
      else this.#socket.send({ ...question, call })
      this.#register(call, resolve, reject, options)
    }) as Promise<Value>
  }

  /**
   * Asks for the admission of a request under terms that the owner has been told. The result has the number that later
   * messages name the request by. @throws as `ask`
   */
  admit(id: string, terms: number, options: AdmitOptions): Promise<Admitted> {
    if (!this.#canAsk(false)) return this.#refuse()
    const request = ++this.#lastCall
    return new Promise((resolve, reject) => {
      this.#socket.send(['admit', request, id, terms] satisfies RequestMessage)
      const onSignals = (signals: unknown): void => resolve({ request, signals: signals as SignalCells })
      this.#register(request, onSignals, reject, { ...options, onLate: () => options.onLate(request) })
    })
  }

  tell(message: RequestMessage): void {
    this.#socket.send(message)
  }

  /** Tells what changes nothing for anybody soon: with the next frame, after at most `lazyMs`. */
  tellLater(report: RequestReport): void {
    this.#socket.add(report)
    this.#lazy ??= this.#clock.after(lazyMs, () => {
      this.#lazy = undefined
      this.#socket.flush()
    })
  }

  /** Ends the connection after everything that was sent. */
  close(): void {
    this.#close()
    this.#socket.end()
  }

  #canAsk(isPoll: boolean): boolean {
    const isAnswering = isPoll || this.#isAnswering
    return !this.#isClosed && isAnswering && !this.#socket.isFull && this.#calls.size < maxCalls
  }

  #refuse(): Promise<never> {
    const words = this.#isClosed ? 'has ended' : 'does not answer'
    return Promise.reject(new StoreUnavailable(`the process that owns the database ${words}`))
  }

  #register(
    call: number,
    resolve: Pending['resolve'],
    reject: Pending['reject'],
    { limitMs, onLate }: AskOptions,
  ): void {
    const limit = this.#clock.after(limitMs, () => this.#giveUp(call))
    this.#calls.set(call, { resolve, reject, limit, onLate, isLate: false })
  }

  #receive(message: ToWorker): void {
    if (!isRequestAnswer(message)) return this.#settle(message)
    if (message[0] === 'admitted') return this.#settle({ call: message[1], value: message[2] })
    for (const wait of message[1]) this.#listener?.onWritten(wait, message[0] === 'durable')
  }

  #settle(answer: Answer): void {
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
    this.#lazy?.cancel()
    for (const pending of this.#calls.values()) {
      pending.limit.cancel()
      pending.reject(new StoreUnavailable('the process that owns the database has ended'))
    }
    this.#calls.clear()
    this.#listener?.onClosed()
  }
}

function isRequestAnswer(message: ToWorker): message is RequestAnswer {
  return Array.isArray(message)
}
