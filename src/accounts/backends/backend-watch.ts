import { holdsOf, type Hold } from '../../domain/backend-controls.ts'
import type { Clock } from '../../runtime/clock.ts'
import { Refresher } from '../../runtime/refresher.ts'
import type { BackendControlStore } from './backend-ports.ts'

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
  readonly #refresher: Refresher

  constructor(deps: BackendWatchDeps) {
    const { clock, onFailed } = deps
    this.#deps = deps
    this.#refresher = new Refresher({ read: () => this.#read(), clock, onFailed })
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
    this.#refresher.refresh()
  }

  close(): void {
    this.#refresher.close()
  }

  async #read(): Promise<void> {
    const { store, keeper } = this.#deps
    const controls = await store.listBackendControls()
    if (this.#refresher.isClosed) return
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
