import { holdsOf, type Hold } from '../../domain/backend-controls.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import type { BackendControlStore } from './backend-ports.ts'

/** Pause after a failed read. */
const retryMs = 250

/** Receives operators' decisions; in the running service, the circuit breakers. */
interface BackendKeeper {
  hold(holds: ReadonlyMap<string, Hold>): void
  reset(backendId: string): void
}

export interface BackendWatchDeps {
  readonly store: Pick<BackendControlStore, 'listBackendControls'>
  readonly keeper: BackendKeeper
  readonly clock: Pick<Clock, 'after'>
  readonly onFailed: (error: unknown) => void
}

/**
 * Applies operators' decisions about backends in this process. While the store is unavailable, the last decisions read
 * stay in force.
 */
export class BackendWatch {
  readonly #deps: BackendWatchDeps
  /** The last release seen for each backend: only later ones are new. */
  #released: ReadonlyMap<string, number> | undefined
  #reading = false
  #isStale = false
  #retry: Timer | undefined
  #isClosed = false

  constructor(deps: BackendWatchDeps) {
    this.#deps = deps
  }

  /**
   * Reads the current decisions. @throws what the store throws: a process that cannot tell which backends are drained
   * must not start
   */
  start(): Promise<void> {
    return this.#read()
  }

  /** Reads again after a change, and retries until the store answers. */
  refresh(): void {
    this.#isStale = true
    if (!this.#reading) void this.#catchUp()
  }

  close(): void {
    this.#isClosed = true
    this.#retry?.cancel()
  }

  async #catchUp(): Promise<void> {
    this.#reading = true
    this.#retry?.cancel()
    try {
      while (this.#isStale && !this.#isClosed) {
        this.#isStale = false
        await this.#read()
      }
    } catch (error) {
      this.#deps.onFailed(error)
      if (!this.#isClosed) this.#retry = this.#deps.clock.after(retryMs, () => this.refresh())
    } finally {
      this.#reading = false
    }
  }

  async #read(): Promise<void> {
    const { store, keeper } = this.#deps
    const controls = await store.listBackendControls()
    if (this.#isClosed) return
    keeper.hold(holdsOf(controls))
    const released = new Map(
      controls.filter(({ kind }) => kind === 'released').map(({ backendId, atMs }) => [backendId, atMs]),
    )
    // Releases from before this process started do not concern the failures it has seen.
    const before = this.#released ?? released
    for (const [backendId, atMs] of released) if (before.get(backendId) !== atMs) keeper.reset(backendId)
    this.#released = released
  }
}
