import type { Duplex } from 'node:stream'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { Slots } from '../../runtime/slots.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import { FramedSocket } from './framed-socket.ts'
import {
  type Answer,
  type ClaimCells,
  maxNumbers,
  type OwnerHealth,
  type Question,
  type RequestAnswer,
  type RequestMessage,
  type RequestReport,
  thrownError,
  type ToWorker,
} from './owner-messages.ts'

/** How often the owner is asked for its health. */
const pollMs = 250
/** The database of an owner that has not answered for this long counts as dead (contract 36.12). */
const leaseMs = 5_000
/** The longest delay of a message without an answer, so that it shares a frame with others. */
const lazyMs = 10

export interface AskOptions {
  /** Without an answer after this long, the question has failed for its caller. */
  readonly limitMs: number
  /** Receives an answer that came too late for the caller. */
  readonly onLate?: (value: unknown) => void
}

interface AdmitOptions<Value> {
  readonly limitMs: number
  /** Makes the result for the caller. */
  readonly onAdmitted: (admitted: Admitted) => Value
  /** Called with the number of a request that was admitted too late for its caller. */
  readonly onLate: (request: number) => void
}

/** A request that the owner admitted: its number, and the account's figures then. */
export type Admitted = Extract<RequestAnswer, readonly ['admitted', ...unknown[]]>

/** Learns when records are on disk. */
export interface WriteListener {
  /** One of the writes of a wait is on disk, or will not be. */
  onWritten(wait: number, isOnDisk: boolean): void
  /** The connection has ended: no further calls follow. */
  onClosed(): void
}

interface Pending {
  resolve(value: unknown): void
  reject(error: Error): void
  readonly limit: Timer
  readonly onLate: ((value: unknown) => void) | undefined
  isLate: boolean
}

/** A number that names a request since its admission. */
const admitted = Symbol('admitted')

/** A worker's connection to the process that owns the database. */
export class OwnerConnection {
  readonly #socket: FramedSocket
  readonly #clock: Clock
  /** Calls without an answer, and requests that are not over. */
  readonly #numbers = new Slots<Pending | typeof admitted>()
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

  /** Sets the listener of writes. */
  listen(listener: WriteListener): void {
    this.#listener = listener
  }

  /** @throws StoreUnavailable if the owner does not answer, MessageTooLarge, or the owner's error */
  ask<Value>(question: Question, options: AskOptions): Promise<Value> {
    if (!this.#canAsk(question.do === 'health')) return this.#refuse()
    return new Promise<unknown>((resolve, reject) => {
      const call = this.#register(resolve, reject, options)
      if (question.do !== 'store') return this.#socket.send({ ...question, call })
      try {
        this.#socket.sendValue({ ...question, call })
      } catch (error) {
        this.#ended(call)
        this.#numbers.remove(call)
        throw error
      }
    }) as Promise<Value>
  }

  /**
   * Asks for the admission of a request under terms that were sent before. Later messages name the request by its
   * number, until it is released. @throws as `ask`
   */
  admit<Value>(
    id: string,
    terms: number,
    claim: ClaimCells | undefined,
    { limitMs, onAdmitted, onLate }: AdmitOptions<Value>,
  ): Promise<Value> {
    if (!this.#canAsk(false)) return this.#refuse()
    return new Promise((resolve, reject) => {
      const admit = (answer: unknown): void => resolve(onAdmitted(answer as Admitted))
      const request = this.#register(admit, reject, { limitMs, onLate: () => onLate(request) })
      const plain = ['admit', request, id, terms] as const satisfies RequestMessage
      this.#socket.send(claim === undefined ? plain : [...plain, claim])
    })
  }

  /** No further message names this request: another may get its number. */
  release(request: number): void {
    this.#numbers.remove(request)
  }

  tell(message: RequestMessage): void {
    this.#socket.send(message)
  }

  /** Sends a report that is not urgent with the next frame, after at most `lazyMs`. */
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
    return !this.#isClosed && isAnswering && !this.#socket.isFull && this.#numbers.size < maxNumbers
  }

  #refuse(): Promise<never> {
    const words = this.#isClosed ? 'has ended' : 'does not answer'
    return Promise.reject(new StoreUnavailable(`the process that owns the database ${words}`))
  }

  /** Returns the number of the call. */
  #register(resolve: Pending['resolve'], reject: Pending['reject'], { limitMs, onLate }: AskOptions): number {
    const limit = this.#clock.after(limitMs, () => this.#giveUp(call))
    const call = this.#numbers.add({ resolve, reject, limit, onLate, isLate: false })
    return call
  }

  /** A call that has ended. */
  #ended(call: number): Pending {
    const pending = this.#numbers.get(call)
    if (pending === undefined || pending === admitted) throw new TypeError('a reply without a request')
    pending.limit.cancel()
    return pending
  }

  #receive(message: ToWorker): void {
    if (!isRequestAnswer(message)) return this.#settle(message)
    if (message[0] === 'admitted') return this.#begin(message)
    for (const wait of message[1]) this.#listener?.onWritten(wait, message[0] === 'durable')
  }

  #begin(answer: Admitted): void {
    const [, request] = answer
    const pending = this.#ended(request)
    this.#numbers.set(request, admitted)
    if (pending.isLate) pending.onLate?.(answer)
    else pending.resolve(answer)
  }

  #settle(answer: Answer): void {
    const pending = this.#ended(answer.call)
    this.#numbers.remove(answer.call)
    if (pending.isLate) {
      if ('value' in answer) pending.onLate?.(answer.value)
    } else if ('value' in answer) pending.resolve(answer.value)
    else pending.reject(thrownError(answer.error))
  }

  #giveUp(call: number): void {
    const pending = this.#numbers.get(call)
    if (pending === undefined || pending === admitted) return
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
    for (const pending of this.#numbers.all()) {
      if (pending === admitted) continue
      pending.limit.cancel()
      pending.reject(new StoreUnavailable('the process that owns the database has ended'))
    }
    this.#listener?.onClosed()
  }
}

function isRequestAnswer(message: ToWorker): message is RequestAnswer {
  return Array.isArray(message)
}
