import type { Clock, Timer } from '../../runtime/clock.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import { LedgerUnavailable } from '../ledger/ledger-unavailable.ts'
import type { OwnerConnection, WriteListener } from './owner-connection.ts'

/** Longer than the owner tries to write, shorter than a caller waits (see `Admission.durable`). */
const limitMs = 22_000

/** Requests that wait for the disk together. */
export class WriteWait {
  /** What messages name it by. */
  readonly number: number
  readonly #written = Promise.withResolvers<void>()
  readonly #onOver: (failed: readonly number[]) => void
  readonly #limit: Timer
  readonly #due: number[] = []
  #open = 0
  #isWritten = false
  #isOver = false

  constructor(number: number, clock: Clock, onOver: (failed: readonly number[]) => void) {
    this.number = number
    this.#onOver = onOver
    this.#limit = clock.after(limitMs, () => this.fail(new StoreUnavailable('the records were not written in time')))
    // Without a waiting request, its failure is not an error of the process.
    this.#written.promise.catch(() => {})
  }

  /** Whether everything is on disk. */
  get isWritten(): boolean {
    return this.#isWritten
  }

  /** Whether it has ended, so that no request may join. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Resolves when everything is on disk. @throws StoreUnavailable, LedgerUnavailable */
  get promise(): Promise<void> {
    return this.#written.promise
  }

  /** Adds one write. If it belongs to a due answer, `due` is the number of its request. */
  add(due?: number): void {
    this.#open += 1
    if (due !== undefined) this.#due.push(due)
  }

  /** One write is on disk. */
  confirm(): void {
    this.#open -= 1
    if (this.#open > 0 || this.#isOver) return
    this.#isWritten = true
    this.#written.resolve()
    this.#end([])
  }

  /** From now on nothing of these requests is delivered. */
  fail(reason: Error): void {
    if (this.#isOver) return
    this.#written.reject(reason)
    this.#end(this.#due)
  }

  #end(failed: readonly number[]): void {
    this.#isOver = true
    this.#limit.cancel()
    this.#onOver(failed)
  }
}

/**
 * What a worker's requests wait for until their owner has written it. Those of one turn of the event loop wait together:
 * they are in one commit, and share a promise and a time limit. A stream waits for its opening, which often is on disk
 * already, so it does not wait with whole answers.
 */
export class WriteWaits implements WriteListener {
  readonly #owner: OwnerConnection
  readonly #clock: Clock
  readonly #waits = new Map<number, WriteWait>()
  #last = 0
  #openings: WriteWait | undefined
  #answers: WriteWait | undefined

  constructor(owner: OwnerConnection, clock: Clock) {
    this.#owner = owner
    this.#clock = clock
    owner.listen(this)
  }

  /** What this turn's streams wait for. */
  ofOpenings(): WriteWait {
    if (this.#openings === undefined || this.#openings.isOver) this.#openings = this.#start()
    return this.#openings
  }

  /** What this turn's whole answers wait for. */
  ofAnswers(): WriteWait {
    if (this.#answers === undefined || this.#answers.isOver) this.#answers = this.#start()
    return this.#answers
  }

  /** Ignores waits that have failed already. */
  onWritten(number: number, isOnDisk: boolean): void {
    const wait = this.#waits.get(number)
    if (isOnDisk) wait?.confirm()
    else wait?.fail(new LedgerUnavailable())
  }

  onClosed(): void {
    for (const wait of this.#waits.values())
      wait.fail(new StoreUnavailable('the process that owns the database has ended'))
  }

  #start(): WriteWait {
    if (this.#openings === undefined && this.#answers === undefined)
      setImmediate(() => {
        this.#openings = undefined
        this.#answers = undefined
      })
    const number = ++this.#last
    const wait = new WriteWait(number, this.#clock, (failed) => {
      this.#waits.delete(number)
      for (const request of failed) {
        this.#owner.tell(['undelivered', request])
        this.#owner.release(request)
      }
    })
    this.#waits.set(number, wait)
    return wait
  }
}
