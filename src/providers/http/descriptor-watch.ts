import { open } from 'node:fs/promises'
import type { EventLog } from '../../domain/events.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'

/**
 * How often a descriptor is opened and closed to test whether any is left: without one, Node silently drops new
 * connections.
 */
const checkEveryMs = 5_000
/** How often the same problem is logged at most. */
const logEveryMs = 60_000

export interface DescriptorWatchDeps {
  readonly clock: Clock
  readonly log: EventLog
  /** The descriptors that the configured connections need. */
  readonly wanted: number
  /** The process limit, if the system reports it. */
  readonly limit: number | undefined
  /** Opens and closes one descriptor; rejects with the system's error if none is left. */
  readonly probe?: () => Promise<void>
}

/**
 * Logs when this process runs out of file descriptors or ports, and at startup when its limit is too low for the
 * configured connections. Node has raised the soft limit to the hard limit before any of our code runs.
 */
export class DescriptorWatch implements Disposable {
  readonly #deps: DescriptorWatchDeps
  #loggedMs = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined
  #isClosed = false

  constructor(deps: DescriptorWatchDeps) {
    this.#deps = deps
  }

  start(): void {
    const { log, wanted, limit } = this.#deps
    if (limit !== undefined && limit < wanted) log({ event: 'descriptor_limit_low', limit, wanted })
    this.#checkLater()
  }

  /** Reports a failed connect or accept with this system error code. */
  report(code: string): void {
    const nowMs = this.#deps.clock.monotonicMs()
    if (nowMs - this.#loggedMs < logEveryMs) return
    this.#loggedMs = nowMs
    this.#deps.log({ event: 'out_of_descriptors', code })
  }

  [Symbol.dispose](): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  #checkLater(): void {
    if (!this.#isClosed) this.#timer = this.#deps.clock.after(checkEveryMs, () => void this.#check())
  }

  async #check(): Promise<void> {
    const { probe = openOne } = this.#deps
    try {
      await probe()
    } catch (error) {
      if (error instanceof Error && 'code' in error && typeof error.code === 'string') this.report(error.code)
    }
    this.#checkLater()
  }
}

async function openOne(): Promise<void> {
  const file = await open('/dev/null')
  await file.close()
}
