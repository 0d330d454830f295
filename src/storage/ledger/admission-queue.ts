import type { Clock } from '../../runtime/clock.ts'
import type { Asking, Decided } from './admission-batches.ts'
import { LedgerUnavailable } from './ledger-unavailable.ts'

/** Maximum requests of this node that wait for a decision. */
const maxWaiting = 20_000
/** Maximum requests decided in one statement. */
const maxBatch = 200
/** Maximum statements at once. */
const maxFlights = 4
/** While a statement runs, another one starts when this many requests wait, or after `nextFlightMs`. */
const worthAFlight = 50
const nextFlightMs = 4
/** While the database fails, time between two batches that try: a server that starts must not be flooded. */
const retryMs = 100
/** A batch without a decision after this long has failed for its callers (contract 36.5). */
export const decideLimitMs = 3_000

/** Decides a batch. Rejects if that failed: it is then unknown whether the requests were admitted. */
type Decide = (batch: readonly Asking[]) => Promise<readonly Decided[]>

interface Waiting extends Asking {
  readonly resolve: (decided: Decided) => void
  readonly reject: (error: Error) => void
}

interface QueueListener {
  onFailed(error: unknown): void
  onDecided(): void
}

/**
 * Gathers the requests that arrive while earlier ones are decided. An account is in one batch at a time, so that no batch
 * waits for a lock of another one of this node.
 */
export class AdmissionQueue {
  readonly #decide: Decide
  readonly #clock: Clock
  readonly #listener: QueueListener
  /** Waiting requests by account, in order of arrival: accounts without a batch under way, and the others. */
  readonly #ready = new Map<string, Waiting[]>()
  readonly #held = new Map<string, Waiting[]>()
  #readyCount = 0
  #waitingCount = 0
  #flights = 0
  #isStarting = false
  #isTimed = false
  #isFailing = false
  #failedMs = Number.NEGATIVE_INFINITY

  constructor(decide: Decide, clock: Clock, listener: QueueListener) {
    this.#decide = decide
    this.#clock = clock
    this.#listener = listener
  }

  /** False from a failed statement until the next successful one. */
  get isHealthy(): boolean {
    return !this.#isFailing
  }

  /** The database has answered elsewhere: requests may be sent to it again. */
  recover(): void {
    this.#isFailing = false
  }

  /** Rejects with LedgerUnavailable if the database cannot decide; while it fails, one batch at a time tries. */
  add(asking: Asking): Promise<Decided> {
    if (this.#waitingCount >= maxWaiting || (this.#isFailing && this.#isTryTooEarly())) {
      return Promise.reject(new LedgerUnavailable())
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { ...asking, resolve, reject }
      const { accountId } = asking.opening
      this.#waitingCount += 1
      const held = this.#held.get(accountId)
      if (held !== undefined) {
        held.push(waiting)
        return
      }
      const line = this.#ready.get(accountId)
      if (line === undefined) this.#ready.set(accountId, [waiting])
      else line.push(waiting)
      this.#readyCount += 1
      this.#startSoon()
    })
  }

  #isTryTooEarly(): boolean {
    return this.#flights > 0 || this.#clock.monotonicMs() - this.#failedMs < retryMs
  }

  /** Starts a batch at the end of this turn of the event loop, or once it is worth it. */
  #startSoon(): void {
    if (this.#readyCount === 0 || this.#flights >= maxFlights || this.#isStarting) return
    if (this.#flights === 0 || this.#readyCount >= worthAFlight) {
      this.#isStarting = true
      setImmediate(() => {
        this.#isStarting = false
        this.#start()
      })
      return
    }
    if (this.#isTimed) return
    this.#isTimed = true
    this.#clock.after(nextFlightMs, () => {
      this.#isTimed = false
      this.#start()
    })
  }

  #start(): void {
    if (this.#readyCount === 0 || this.#flights >= maxFlights) return
    void this.#fly(this.#take())
    this.#startSoon()
  }

  #take(): Waiting[] {
    const batch: Waiting[] = []
    for (const [accountId, line] of this.#ready) {
      if (batch.length >= maxBatch) break
      this.#ready.delete(accountId)
      this.#readyCount -= line.length
      const taken = takeAlike(line, maxBatch - batch.length)
      for (const waiting of taken) batch.push(waiting)
      this.#held.set(accountId, line)
    }
    this.#waitingCount -= batch.length
    return batch
  }

  async #fly(batch: readonly Waiting[]): Promise<void> {
    this.#flights += 1
    const limit = this.#clock.after(decideLimitMs, () => this.#fail(batch, new Error('the database does not answer')))
    try {
      const decided = await this.#decide(batch)
      this.#isFailing = false
      this.#listener.onDecided()
      // Those that have failed meanwhile stay refused: their admissions are found and refunded.
      for (const [at, { resolve }] of batch.entries()) resolve(decided[at]!)
    } catch (error) {
      this.#fail(batch, error)
    } finally {
      limit.cancel()
      this.#flights -= 1
      this.#release(batch)
      this.#startSoon()
    }
  }

  #fail(batch: readonly Waiting[], error: unknown): void {
    this.#isFailing = true
    this.#failedMs = this.#clock.monotonicMs()
    this.#listener.onFailed(error)
    const unavailable = new LedgerUnavailable(error)
    for (const { reject } of batch) reject(unavailable)
    this.#refuseWaiting(unavailable)
  }

  /** A slow database is treated like a dead one: those who wait would only wait longer (contract 36.5). */
  #refuseWaiting(unavailable: LedgerUnavailable): void {
    for (const lines of [this.#ready, this.#held]) {
      for (const line of lines.values()) {
        for (const { reject } of line) reject(unavailable)
        line.length = 0
      }
    }
    this.#ready.clear()
    this.#readyCount = 0
    this.#waitingCount = 0
  }

  #release(batch: readonly Waiting[]): void {
    for (const { opening } of batch) {
      const line = this.#held.get(opening.accountId)
      if (line === undefined) continue
      this.#held.delete(opening.accountId)
      if (line.length === 0) continue
      this.#ready.set(opening.accountId, line)
      this.#readyCount += line.length
    }
  }
}

/** Removes up to `limit` requests from the start of the line that share the limits of the first. */
function takeAlike(line: Waiting[], limit: number): Waiting[] {
  const { plan } = line[0]!
  const perKey = new Map<string, number | undefined>()
  let count = 0
  while (count < Math.min(limit, line.length)) {
    const { plan: own, rate, opening } = line[count]!
    if (own.requestsPerMinute !== plan.requestsPerMinute || own.requestsPerMonth !== plan.requestsPerMonth) break
    if (perKey.has(opening.keyId) && perKey.get(opening.keyId) !== rate?.perMinute) break
    perKey.set(opening.keyId, rate?.perMinute)
    count += 1
  }
  return line.splice(0, count)
}
