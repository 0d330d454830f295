import type { EventLog } from '../../domain/events.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import type { KeyStore, KnownKey } from '../ports.ts'
import { enforcedLimits } from './key-limits.ts'

/** How often the store is polled for changes: the longest time until a revocation takes effect (contract 3.11). */
const pollMs = 250
/** If the store does not answer for this long, cached entries are no longer trusted (contract 3.11). */
const leaseMs = 5_000
/** Maximum number of cached keys; the oldest entry is evicted first. */
const maxRemembered = 50_000
/** Concurrent lookups; beyond this the store counts as unavailable. */
const maxLookups = 256
/** A store that takes longer than this to answer counts as unavailable. */
const answerMs = 2_000
/** Unknown digests are cached too, so that a client that repeats a dead key costs little. */
const unknownForMs = 5_000
/** Maximum number of cached unknown digests. They have their own cache, so made-up keys cannot evict real ones. */
const maxUnknown = 5_000

/** Caches keys by digest while the store confirms four times a second that nothing has changed. */
export class KeyCache {
  readonly #store: KeyStore
  readonly #clock: Clock
  readonly #log: EventLog
  readonly #onChange: () => void
  readonly #entries = new BoundedMap<string, KnownKey>(maxRemembered)
  /** When each of these entries expires, monotonic milliseconds. */
  readonly #unknown = new BoundedMap<string, number>(maxUnknown)
  /** Lookups that began after the last change, by digest. */
  readonly #lookups = new Map<string, Promise<KnownKey | undefined>>()
  /** How many have not ended, with those that began before it. */
  #running = 0
  #revision: number | undefined
  #confirmedMs = Number.NEGATIVE_INFINITY
  #confirming: Promise<void> | undefined
  /** Whether the last poll failed. */
  #isFailing = false
  #timer: Timer | undefined
  #closed = false

  /** `onChange` is called when a key, account, or upstream has changed. */
  constructor(store: KeyStore, clock: Clock, log: EventLog, onChange: () => void) {
    this.#store = store
    this.#clock = clock
    this.#log = log
    this.#onChange = onChange
  }

  /** Starts polling the store; resolves after its first answer. @throws what the store throws */
  async start(): Promise<void> {
    await this.#confirmOnce()
    this.#schedule()
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
  }

  /** Whether cached entries may be trusted. */
  isFresh(): boolean {
    return this.#clock.monotonicMs() - this.#confirmedMs < leaseMs
  }

  /** The entry of a digest, or undefined if there is definitely none. @throws if the store is unavailable */
  find(digest: string): KnownKey | undefined | Promise<KnownKey | undefined> {
    if (this.isFresh()) return this.#findFresh(digest)
    // The next poll decides when the store works again: lookups would only wait, and all arrive at its recovery.
    if (this.#isFailing) return Promise.reject(new Error('the key store does not answer'))
    // This process was paused, or the store has only just become slow.
    return this.#confirmOnce().then(() => this.#findFresh(digest))
  }

  #findFresh(digest: string): KnownKey | undefined | Promise<KnownKey | undefined> {
    const known = this.#entries.get(digest)
    if (known !== undefined) return known
    if (this.#isUnknown(digest)) return undefined
    return this.#lookups.get(digest) ?? this.#lookUp(digest)
  }

  #isUnknown(digest: string): boolean {
    const untilMs = this.#unknown.get(digest)
    return untilMs !== undefined && untilMs > this.#clock.monotonicMs()
  }

  #lookUp(digest: string): Promise<KnownKey | undefined> {
    if (this.#running >= maxLookups) return Promise.reject(new Error('too many concurrent key lookups'))
    const revision = this.#revision
    const lookup = this.#inTime(this.#store.find(digest))
      .then((found) => {
        const entry = found === undefined ? undefined : { ...found, limits: enforcedLimits(found.key) }
        // Cached only if nothing changed while the store was being read.
        if (revision === this.#revision) this.#remember(digest, entry)
        return entry
      })
      .finally(() => {
        this.#running -= 1
        // A later lookup may have taken its place.
        if (this.#lookups.get(digest) === lookup) this.#lookups.delete(digest)
      })
    this.#running += 1
    this.#lookups.set(digest, lookup)
    return lookup
  }

  #remember(digest: string, entry: KnownKey | undefined): void {
    if (entry === undefined) this.#unknown.set(digest, this.#clock.monotonicMs() + unknownForMs)
    else this.#entries.set(digest, entry)
  }

  #inTime<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(answerMs, () => reject(new Error('the key store did not answer in time')))
      answer.then(resolve, reject).finally(() => timer.cancel())
    })
  }

  #schedule(): void {
    this.#timer = this.#clock.after(pollMs, () => {
      void this.#poll()
    })
  }

  async #poll(): Promise<void> {
    try {
      await this.#confirmOnce()
    } catch (error) {
      this.#log({ event: 'store_failing', reason: errorName(error) })
    }
    if (!this.#closed) this.#schedule()
  }

  /** Asks the store whether anything has changed, or joins the question under way. */
  #confirmOnce(): Promise<void> {
    this.#confirming ??= this.#confirm()
      .then(
        () => {
          this.#isFailing = false
        },
        (error: unknown) => {
          this.#isFailing = true
          throw error
        },
      )
      .finally(() => {
        this.#confirming = undefined
      })
    return this.#confirming
  }

  async #confirm(): Promise<void> {
    const askedMs = this.#clock.monotonicMs()
    const revision = await this.#inTime(this.#store.revision())
    if (revision !== this.#revision) {
      const isFirst = this.#revision === undefined
      this.#revision = revision
      this.#entries.clear()
      this.#unknown.clear()
      this.#lookups.clear()
      if (!isFirst) this.#onChange()
    }
    this.#confirmedMs = askedMs
  }
}
