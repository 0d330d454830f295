import { holdsOf, type Hold } from '../domain/backend-controls.ts'
import type { Clock, Timer } from '../domain/clock.ts'
import type { BackendControlStore } from './backend-ports.ts'

/** After a read that failed. */
const retryMs = 250

/** What is told of operators' decisions: in the running service the memory of which backends are well. */
interface BackendKeeper {
  hold(holds: ReadonlyMap<string, Hold>): void
  forgive(backendId: string): void
}

export interface BackendWatchParts {
  readonly store: Pick<BackendControlStore, 'listBackendControls'>
  readonly keeper: BackendKeeper
  readonly clock: Pick<Clock, 'after'>
  readonly onFailed: (error: unknown) => void
}

/** Has operators' decisions about backends followed in this process. While the store does not answer, what was read last stands. */
export class BackendWatch {
  readonly #parts: BackendWatchParts
  /** The last release of each backend that was seen: only later ones are news. */
  #released: ReadonlyMap<string, number> | undefined
  #reading = false
  #isStale = false
  #retry: Timer | undefined
  #isClosed = false

  constructor(parts: BackendWatchParts) {
    this.#parts = parts
  }

  /** Reads what stands. @throws what the store throws: who cannot know what is drained must not begin */
  start(): Promise<void> {
    return this.#read()
  }

  /** Reads again, because something was changed; goes on trying until the store answers. */
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
      this.#parts.onFailed(error)
      if (!this.#isClosed) this.#retry = this.#parts.clock.after(retryMs, () => this.refresh())
    } finally {
      this.#reading = false
    }
  }

  async #read(): Promise<void> {
    const { store, keeper } = this.#parts
    const controls = await store.listBackendControls()
    if (this.#isClosed) return
    keeper.hold(holdsOf(controls))
    const released = new Map(
      controls.filter(({ kind }) => kind === 'released').map(({ backendId, atMs }) => [backendId, atMs]),
    )
    // What was released before this process began has nothing to do with what it has seen.
    const before = this.#released ?? released
    for (const [backendId, atMs] of released) if (before.get(backendId) !== atMs) keeper.forgive(backendId)
    this.#released = released
  }
}
