import { readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Clock, Timer } from '../../runtime/clock.ts'
import type { EventLog } from '../../domain/events.ts'

/**
 * How often a descriptor is opened and closed to test whether any is left: without one, Node silently drops new
 * connections.
 */
const checkEveryMs = 5_000
/** How often the same problem is logged at most. */
const logEveryMs = 60_000
/** Descriptors for everything but connections: the database, its log, stored answers, name lookups. */
const besidesConnections = 256

export interface DescriptorWatchDeps {
  readonly clock: Clock
  readonly log: EventLog
  /** Client connections that the configuration allows. */
  readonly connections: number
  /** The process limit; by default the system's. */
  readonly limit?: number | undefined
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
    const { log, connections, limit = openFilesLimit() } = this.#deps
    const wanted = connections + besidesConnections
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

/** The soft limit of open files; undefined if the system does not report it. */
function openFilesLimit(): number | undefined {
  let text: string
  try {
    text = readFileSync('/proc/self/limits', 'utf8')
  } catch {
    // Not Linux.
    return undefined
  }
  const found = /^Max open files\s+(\d+)/m.exec(text)?.[1]
  return found === undefined ? undefined : Number(found)
}
