import type { BudgetHold } from '../../domain/budgets.ts'
import type { RequestOpening } from '../../domain/requests.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { SwapRemoveSet } from '../../runtime/swap-remove-set.ts'
import type { OutcomeColumns } from '../requests.ts'
import type { Cell } from '../sqlite/ledger-batch.ts'
import type { DatabaseThread } from '../sqlite/sqlite-thread.ts'
import { LedgerUnavailable } from './ledger-unavailable.ts'
import {
  type ChargedAccount,
  chargedUnits,
  type LedgerBatch,
  JournalEntry,
  writeDelivered,
  writeHolds,
  writeLost,
  writeOpening,
  writeOutcome,
  writeRecords,
  writeSpending,
  writeVoid,
} from './records.ts'

/**
 * Delay before writing what nothing waits for, from the first entry of a batch on. Most requests end within it, so one
 * record holds both beginning and end. The timer of an earlier batch does not shorten it: a request that was written in
 * the middle would cost two transactions.
 */
const lazyMs = 10
/**
 * A batch that is not on disk after this long has failed for everything that waits for it: a disk can hang without an
 * error.
 */
const commitLimitMs = 10_000
/** Time limit of `flush`, however many records arrive during it. */
const flushLimitMs = 20_000
/** The reason reported if a batch hangs. */
export const commitHangs = 'commit_hangs'
/** Minimum time between the starts of two commits under load, so that many requests share one. */
const commitEveryMs = 3
/** If the last batch had this many requests, the service is under load; otherwise a commit starts immediately. */
const busyBatch = 8
/**
 * How often the start point of recovery advances. It lags the oldest request by one such step; see
 * `#moveRecoverFrom`.
 */
const recoverStepMs = 10_000

export interface JournalListener {
  /** Everything about the request is on disk. */
  onFinished(entry: JournalEntry): void
  /** From now on nothing can be recorded, until a commit succeeds again; `reason` is a code. */
  onFailing(reason: string): void
  /** The charge of an undelivered answer could not be written and is canceled. */
  onVoided(entry: JournalEntry): void
}

/** Collects the records of requests into batches, has them written in order, and tracks what is on disk. */
export class LedgerJournal {
  readonly #clock: Clock
  readonly #listener: JournalListener
  #writer: Pick<DatabaseThread, 'post'> | undefined
  #nextBatch: LedgerBatch = newBatch(1)
  #isFlushDue = false
  #lazyTimer: Timer | undefined
  #commitLimit: Timer | undefined
  #lastPostMs = Number.NEGATIVE_INFINITY
  #lastPostSize = 0
  readonly #posted: LedgerBatch[] = []
  readonly #inFlight = new SwapRemoveSet<JournalEntry>()
  #isFailing = false
  #recoverFrom: string
  #nextRecoverFrom: string
  #recoverMovedAtMs: number

  /** `recoverFrom` is what `recoverRequests` gave. */
  constructor(clock: Clock, recoverFrom: string, listener: JournalListener) {
    this.#clock = clock
    this.#listener = listener
    this.#recoverFrom = recoverFrom
    this.#nextRecoverFrom = recoverFrom
    this.#recoverMovedAtMs = clock.monotonicMs()
  }

  /** Requests that are admitted and not completely on disk. */
  get inFlight(): number {
    return this.#inFlight.size
  }

  /** Records with a lower request id are all decided. */
  get recoverFrom(): string {
    return this.#recoverFrom
  }

  /** False from a failed commit until the next successful one. */
  get isHealthy(): boolean {
    return this.#writer !== undefined && !this.#isFailing
  }

  /** Sets the writer of all further batches. */
  use(writer: Pick<DatabaseThread, 'post'>): void {
    this.#writer = writer
  }

  /** Stops writing: the writer has ended for good. */
  end(): void {
    this.#writer = undefined
    this.#commitLimit?.cancel()
    this.#refuseWaiting()
  }

  open(
    facts: RequestOpening,
    admittedAtMs: number,
    periodId: string,
    account: ChargedAccount,
    holds?: readonly BudgetHold[],
  ): JournalEntry {
    const entry = new JournalEntry(facts, admittedAtMs, periodId, account, this.#nextBatch)
    entry.holds = holds
    this.#inFlight.add(entry)
    this.#add(entry)
    return entry
  }

  /** Records all that a request holds of its budgets now. Resolves and rejects as `durable`. */
  holdMore(entry: JournalEntry, holds: readonly BudgetHold[]): Promise<void> {
    entry.holds = holds
    const batch = this.#nextBatch
    // Otherwise the record of its beginning, which is still to be written, has it.
    if ((entry.toWrite & writeOpening) === 0) writeHolds(entry, batch.holds)
    return this.#written(entry, batch) ?? Promise.resolve()
  }

  /** Records that a stream has begun. */
  markDelivered(entry: JournalEntry): void {
    this.#queue(entry, writeDelivered)
  }

  /** Ends a request. `dueMark` is set if its charged answer has not been delivered yet. */
  settle(entry: JournalEntry, result: OutcomeColumns, dueMark: number | null): void {
    entry.outcome = result
    entry.dueMark = dueMark
    this.#queue(entry, writeOutcome)
    if (dueMark !== null && !this.isHealthy) this.#void(entry)
  }

  /** Ends a request whose process died. */
  lose(entry: JournalEntry, result: OutcomeColumns): void {
    entry.outcome = result
    this.#queue(entry, writeLost)
  }

  /** Ends the wait for the delivery of a held entry: it was delivered, or its charge is canceled. */
  release(entry: JournalEntry, isDelivered: boolean): void {
    entry.isHeld = false
    if (!isDelivered && !entry.isVoid) this.#void(entry)
    else if (entry.batch.isDurable) this.#finish(entry)
  }

  /**
   * See `Admission.durable`. Rejects after the time limits of two commits at the latest: the current one's and its own.
   */
  durable(entry: JournalEntry): Promise<void> | undefined {
    return this.#written(entry, entry.batch)
  }

  #written({ isVoid }: JournalEntry, batch: LedgerBatch): Promise<void> | undefined {
    if (isVoid) return Promise.reject(new LedgerUnavailable())
    if (batch.isDurable) return undefined
    if (!this.isHealthy) return Promise.reject(new LedgerUnavailable())
    batch.waiting ??= Promise.withResolvers()
    if (batch === this.#nextBatch) this.#flushSoon()
    return batch.waiting.promise
  }

  /** Resolves when everything recorded so far is on disk; rejects if that fails or takes too long. */
  async flush(): Promise<void> {
    const giveUpAtMs = this.#clock.monotonicMs() + flushLimitMs
    for (;;) {
      this.#post()
      const last = this.#posted.at(-1)
      if (last === undefined) return
      if (!this.isHealthy || this.#clock.monotonicMs() >= giveUpAtMs) throw new LedgerUnavailable()
      last.waiting ??= Promise.withResolvers()
      await last.waiting.promise
    }
  }

  onCommitted(number: number): void {
    this.#isFailing = false
    while (this.#posted[0] !== undefined && this.#posted[0].number <= number) {
      const batch = this.#posted.shift()!
      batch.isDurable = true
      for (const entry of batch.entries) {
        if (entry.batch !== batch || entry.outcome === undefined || entry.isHeld) continue
        this.#finish(entry)
      }
      batch.entries = []
      batch.waiting?.resolve()
    }
    this.#watchCommit()
    if (this.#nextBatch.waiting !== undefined) this.#flushSoon()
    else if (!isEmpty(this.#nextBatch)) this.#flushLater(lazyMs)
  }

  /** Handles a commit that failed or hangs. Reports it once until a commit succeeds. */
  onFailed(reason: string): void {
    if (!this.#isFailing) this.#listener.onFailing(reason)
    this.#refuseWaiting()
  }

  #finish(entry: JournalEntry): void {
    this.#inFlight.delete(entry)
    this.#listener.onFinished(entry)
  }

  #refuseWaiting(): void {
    this.#isFailing = true
    for (const batch of [...this.#posted, this.#nextBatch]) {
      for (const entry of batch.entries) {
        if (entry.batch === batch && entry.dueMark !== null && !entry.isVoid) this.#void(entry)
      }
      batch.waiting?.reject(new LedgerUnavailable())
      batch.waiting = undefined
    }
  }

  /** Cancels a charge that is not on disk, although a later commit may still write it. */
  #void(entry: JournalEntry): void {
    entry.isVoid = true
    this.#listener.onVoided(entry)
    this.#queue(entry, writeVoid)
  }

  #queue(entry: JournalEntry, what: number): void {
    entry.toWrite |= what
    if (entry.batch === this.#nextBatch) return
    entry.batch = this.#nextBatch
    this.#add(entry)
  }

  #add(entry: JournalEntry): void {
    const batch = this.#nextBatch
    if (batch.entries.length === 0) batch.lazyUntilMs = this.#clock.monotonicMs() + lazyMs
    batch.entries.push(entry)
    this.#flushLater(lazyMs)
  }

  /**
   * Flushes for a caller that waits: at the end of this turn of the event loop, or when the worker has finished its
   * current batch.
   */
  #flushSoon(): void {
    if (this.#isFlushDue || this.#posted.length > 0) return
    this.#isFlushDue = true
    const flush = (): void => {
      this.#isFlushDue = false
      if (this.#posted.length === 0) this.#post()
    }
    const waitMs = this.#lastPostSize < busyBatch ? 0 : this.#lastPostMs + commitEveryMs - this.#clock.monotonicMs()
    if (waitMs > 0) this.#clock.after(waitMs, flush)
    else setImmediate(flush)
  }

  #flushLater(delayMs: number): void {
    if (this.#lazyTimer !== undefined) return
    this.#lazyTimer = this.#clock.after(delayMs, () => {
      this.#lazyTimer = undefined
      const { lazyUntilMs } = this.#nextBatch
      // When the batch that is being written is on disk, `onCommitted` starts the timer again.
      if (this.#posted.length > 0 || isEmpty(this.#nextBatch)) return
      const restMs = Math.ceil(lazyUntilMs - this.#clock.monotonicMs())
      // Node's timers are up to a millisecond early.
      if (restMs > 1) this.#flushLater(restMs)
      else this.#post()
    })
  }

  #post(): void {
    const batch = this.#nextBatch
    if (isEmpty(batch) || this.#writer === undefined) return
    this.#nextBatch = newBatch(batch.number + 1)
    this.#lastPostMs = this.#clock.monotonicMs()
    this.#lastPostSize = batch.entries.length
    this.#posted.push(batch)
    if (this.#posted.length === 1) this.#watchCommit()
    const records: Cell[] = batch.holds
    const usage: Cell[] = []
    const spending: Cell[] = []
    const charged: ChargedAccount[] = []
    let isRecoverFromMoved = this.#moveRecoverFrom()
    for (const entry of batch.entries) {
      const { id } = entry.opening
      if ((entry.toWrite & writeOpening) !== 0) {
        // An id is minted before its request has arrived: a slow request may be older than all others in flight.
        if (id < this.#nextRecoverFrom) this.#nextRecoverFrom = id
        if (id < this.#recoverFrom) {
          this.#recoverFrom = id
          isRecoverFromMoved = true
        }
      }
      writeRecords(entry, records)
      const units = chargedUnits(entry)
      writeSpending(entry, spending)
      entry.toWrite = 0
      if (units === 0) continue
      const { account } = entry
      if (account.batchUnits !== 0 && account.batchPeriodId === entry.periodId) {
        account.batchUnits += units
      } else if (account.batchUnits === 0) {
        account.batchPeriodId = entry.periodId
        account.batchUnits = units
        charged.push(account)
      } else {
        usage.push(account.id, entry.periodId, units)
      }
    }
    for (const account of charged) {
      usage.push(account.id, account.batchPeriodId, account.batchUnits)
      account.batchUnits = 0
    }
    const { number } = batch
    this.#writer.post({
      number,
      records,
      usage,
      ...(spending.length > 0 && { spending }),
      ...(isRecoverFromMoved && { recoverFrom: this.#recoverFrom }),
    })
  }

  /** Restarts the time limit for the oldest posted batch. */
  #watchCommit(): void {
    this.#commitLimit?.cancel()
    this.#commitLimit =
      this.#posted.length === 0 ? undefined : this.#clock.after(commitLimitMs, () => this.onFailed(commitHangs))
  }

  /**
   * Moves on to the oldest request that was in flight one step ago. The step in between covers an answer that is on
   * disk as charged but not delivered yet: it is no longer in flight, and not decided.
   */
  #moveRecoverFrom(): boolean {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#recoverMovedAtMs < recoverStepMs) return false
    this.#recoverMovedAtMs = nowMs
    const isMoved = this.#recoverFrom !== this.#nextRecoverFrom
    this.#recoverFrom = this.#nextRecoverFrom
    let oldest: string | undefined
    for (const { opening: facts } of this.#inFlight.all())
      if (oldest === undefined || facts.id < oldest) oldest = facts.id
    if (oldest !== undefined) this.#nextRecoverFrom = oldest
    return isMoved
  }
}

function newBatch(number: number): LedgerBatch {
  return { number, entries: [], holds: [], isDurable: false, waiting: undefined, lazyUntilMs: 0 }
}

function isEmpty({ entries, holds }: LedgerBatch): boolean {
  return entries.length === 0 && holds.length === 0
}
