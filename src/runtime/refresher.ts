import type { Clock, Timer } from './clock.ts'

/** Pause after a failed read. */
const retryMs = 250

export interface RefresherDeps {
  /** Reads the current state and applies it. A read that ends after `close` must apply nothing. */
  readonly read: () => Promise<void>
  readonly clock: Pick<Clock, 'after'>
  readonly onFailed: (error: unknown) => void
}

/** Reads something again after each change, one read at a time, and retries every 250 ms until it succeeds. */
export class Refresher {
  readonly #deps: RefresherDeps
  #isReading = false
  #isStale = false
  #retry: Timer | undefined
  #isClosed = false

  constructor(deps: RefresherDeps) {
    this.#deps = deps
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Reads now, or again after the read in progress. */
  refresh(): void {
    this.#isStale = true
    if (!this.#isReading) void this.#catchUp()
  }

  close(): void {
    this.#isClosed = true
    this.#retry?.cancel()
  }

  async #catchUp(): Promise<void> {
    const { read, clock, onFailed } = this.#deps
    this.#isReading = true
    this.#retry?.cancel()
    try {
      while (this.#isStale && !this.#isClosed) {
        this.#isStale = false
        await read()
      }
    } catch (error) {
      onFailed(error)
      if (!this.#isClosed) this.#retry = clock.after(retryMs, () => this.refresh())
    } finally {
      this.#isReading = false
    }
  }
}
