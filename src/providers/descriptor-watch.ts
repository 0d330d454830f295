import { readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Clock, Timer } from '../domain/clock.ts'
import type { EventLog } from '../domain/events.ts'

/** How often a descriptor is opened and closed to see whether any is left: where none is, Node drops new connections silently. */
const checkEveryMs = 5_000
/** The same trouble is logged once in this time. */
const logEveryMs = 60_000
/** Besides connections: the database, its log, answers that are kept, name look-ups. */
const besidesConnections = 256

export interface DescriptorWatchParts {
  readonly clock: Clock
  readonly log: EventLog
  /** Connections of callers that the configuration allows. */
  readonly connections: number
  /** The limit of the process; by default what the system says. */
  readonly limit?: number | undefined
  /** Opens and closes one descriptor; rejects with the system's error where none is left. */
  readonly probe?: () => Promise<void>
}

/**
 * Reports in the log when this process runs out of file descriptors or ports, and at the start when its limit is too low for
 * the configured connections. Node has raised the soft limit to the hard one before any of our code runs.
 */
export class DescriptorWatch implements Disposable {
  readonly #parts: DescriptorWatchParts
  #loggedMs = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined
  #isClosed = false

  constructor(parts: DescriptorWatchParts) {
    this.#parts = parts
  }

  start(): void {
    const { log, connections, limit = openFilesLimit() } = this.#parts
    const wanted = connections + besidesConnections
    if (limit !== undefined && limit < wanted) log({ event: 'descriptor_limit_low', limit, wanted })
    this.#checkLater()
  }

  /** An attempt to call or to accept failed with this code of the system. */
  report(code: string): void {
    const nowMs = this.#parts.clock.monotonicMs()
    if (nowMs - this.#loggedMs < logEveryMs) return
    this.#loggedMs = nowMs
    this.#parts.log({ event: 'out_of_descriptors', code })
  }

  [Symbol.dispose](): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  #checkLater(): void {
    if (!this.#isClosed) this.#timer = this.#parts.clock.after(checkEveryMs, () => void this.#check())
  }

  async #check(): Promise<void> {
    const { probe = openOne } = this.#parts
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

/** The soft limit of open files; undefined where the system does not say. */
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
