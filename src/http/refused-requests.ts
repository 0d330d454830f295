import { errorCodes } from '../domain/error-message.ts'
import type { ErrorCode, KeyOwner } from '../domain/errors.ts'
import type { EventLog } from '../domain/events.ts'
import { type RefusedHour, refusedHourMs } from '../domain/refused-requests.ts'
import type { Clock, Timer } from '../runtime/clock.ts'
import { errorName } from '../runtime/describe-bug.ts'
import { FairShare } from '../runtime/fair-share.ts'

/** Interval between writes, milliseconds; also after failed writes. */
const flushMs = 1_000
const longestRetryMs = 60_000
/** Counters that wait to be written, one per account, hour, and error. Accounts share them fairly. */
const maxWaiting = 10_000
/** Rows per write. */
const rowsPerWrite = 100
/** Attempts to write at shutdown. */
const lastTries = 2

const codeNumbers: ReadonlyMap<ErrorCode, number> = new Map(errorCodes.map((code, index) => [code, index]))

export interface RefusedRequestsDeps {
  readonly store: { addRefused(hours: readonly RefusedHour[]): Promise<void> }
  readonly clock: Clock
  readonly log: EventLog
}

type Count = { -readonly [Field in keyof RefusedHour]: RefusedHour[Field] }

/**
 * Counts rejected requests per account (decision 47). A rejection changes one entry in memory; entries are written
 * together, at most once a second, and stay until the store has accepted them.
 */
export class RefusedRequests {
  readonly #deps: RefusedRequestsDeps
  readonly #share: FairShare
  /** By account, then by hour and error. */
  #waiting = new Map<string, Map<number, Count>>()
  #timer: Timer | undefined
  #writing: Promise<void> | undefined
  #delayMs = flushMs
  #dropped = 0
  #isClosed = false

  constructor(deps: RefusedRequestsDeps, max = maxWaiting) {
    this.#deps = deps
    this.#share = new FairShare(max)
  }

  /** Counts one rejected request. */
  note(owner: KeyOwner, code: ErrorCode, requestId: string): void {
    const atMs = this.#deps.clock.nowMs()
    const hour = Math.floor(atMs / refusedHourMs)
    const slot = slotOf(hour, code)
    const count = this.#waiting.get(owner.accountId)?.get(slot)
    if (count === undefined) return this.#begin(owner, code, requestId, atMs)
    count.requests += 1
    count.lastRequestId = requestId
    count.lastKeyId = owner.keyId
    count.lastAtMs = atMs
  }

  /** Writes what is waiting, and logs how many rejections could not be written. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#writing
    for (let tries = 0; tries < lastTries && this.#waiting.size > 0; tries++) await this.#write()
    for (const count of this.#all()) this.#dropped += count.requests
    this.#tellDropped()
  }

  #begin({ accountId, keyId }: KeyOwner, code: ErrorCode, requestId: string, atMs: number): void {
    const hour = Math.floor(atMs / refusedHourMs)
    if (this.#share.take(accountId)) {
      const [hourMs, lastRequestId, lastKeyId, lastAtMs] = [hour * refusedHourMs, requestId, keyId, atMs]
      this.#keep(slotOf(hour, code), { accountId, code, hourMs, requests: 1, lastRequestId, lastKeyId, lastAtMs })
    } else this.#dropped += 1
    this.#schedule()
  }

  #keep(slot: number, count: Count): void {
    const counts = this.#waiting.get(count.accountId)
    if (counts === undefined) this.#waiting.set(count.accountId, new Map([[slot, count]]))
    else counts.set(slot, count)
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#writing !== undefined || this.#isClosed) return
    this.#timer = this.#deps.clock.after(this.#delayMs, () => {
      this.#timer = undefined
      this.#writing = this.#write().finally(() => {
        this.#writing = undefined
        if (this.#waiting.size > 0) this.#schedule()
      })
    })
  }

  *#all(): Generator<Count> {
    for (const counts of this.#waiting.values()) yield* counts.values()
  }

  /** Writes what is waiting now. Never rejects: failed writes are retried later. */
  async #write(): Promise<void> {
    const rows = [...this.#all()]
    this.#waiting = new Map()
    let written = 0
    try {
      for (; written < rows.length; written += rowsPerWrite) {
        const chunk = rows.slice(written, written + rowsPerWrite)
        await this.#deps.store.addRefused(chunk)
        for (const { accountId } of chunk) this.#share.give(accountId)
      }
      this.#delayMs = flushMs
    } catch (error) {
      for (const count of rows.slice(written)) this.#putBack(count)
      this.#delayMs = Math.min(longestRetryMs, 2 * this.#delayMs)
      this.#deps.log({ event: 'store_failing', reason: errorName(error) })
    }
    this.#tellDropped()
  }

  /** A count that arrived meanwhile is newer. */
  #putBack(count: Count): void {
    const slot = slotOf(count.hourMs / refusedHourMs, count.code as ErrorCode)
    const later = this.#waiting.get(count.accountId)?.get(slot)
    if (later === undefined) return this.#keep(slot, count)
    later.requests += count.requests
    this.#share.give(count.accountId)
  }

  #tellDropped(): void {
    if (this.#dropped === 0) return
    this.#deps.log({ event: 'refused_requests_dropped', count: this.#dropped })
    this.#dropped = 0
  }
}

/** One small number per hour and error, so that the map's keys need no strings. */
function slotOf(hour: number, code: ErrorCode): number {
  return hour * codeNumbers.size + codeNumbers.get(code)!
}
