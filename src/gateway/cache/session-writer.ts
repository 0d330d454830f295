import type { EventLog } from '../../domain/events.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import type { CacheSessionStore, StoredCacheSession } from './session-store.ts'

/** Sessions wait this long, so that the changes of one turn, and many sessions, are written together. */
const waitMs = 250
/** Sessions of one transaction, and of all that wait. Beyond that, sessions stay in memory only. */
const maxAtOnce = 200
const maxWaiting = 5_000

/** Writes sessions in groups, apart from the requests that change them (contract 45.8). */
export class SessionWriter {
  readonly #store: CacheSessionStore
  readonly #clock: Clock
  readonly #log: EventLog
  readonly #waiting = new Map<string, () => StoredCacheSession>()
  #timer: Timer | undefined
  #written: Promise<void> = Promise.resolve()

  constructor(store: CacheSessionStore, clock: Clock, log: EventLog) {
    this.#store = store
    this.#clock = clock
    this.#log = log
  }

  /** Whether a session is written soon, with its changes until then. */
  isWaiting(session: string): boolean {
    return this.#waiting.has(session)
  }

  /** Writes what `read` returns by then. */
  add(session: string, read: () => StoredCacheSession): void {
    if (this.#waiting.size >= maxWaiting) return
    this.#waiting.set(session, read)
    this.#timer ??= this.#clock.after(waitMs, () => void this.flush())
  }

  /** Writes everything that waits. Never rejects: without the store, sessions are known to this process only. */
  flush(): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#written = this.#written.then(() => this.#write())
    return this.#written
  }

  async #write(): Promise<void> {
    const all = [...this.#waiting.values()]
    this.#waiting.clear()
    try {
      for (let from = 0; from < all.length; from += maxAtOnce)
        await this.#store.saveCacheSessions(all.slice(from, from + maxAtOnce).map((read) => read()))
    } catch (error) {
      this.#log({ event: 'store_failing', reason: errorName(error) })
    }
  }
}
