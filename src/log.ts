import type { EventLog } from './domain/events.ts'
import { safeJson } from './domain/safe-text.ts'

/** Lines wait this long, so that many are written at once. */
const flushMs = 100
/**
 * Lines that may wait for one flush; further ones are counted and dropped, so that a burst cannot fill the memory. It
 * is no help against a reader that does not read: a pipe is written synchronously on Linux, and holds the process up
 * until it has room.
 */
const maxWaiting = 10_000

export interface LogOptions {
  /** Where lines go: a stream of the process, usually standard error. */
  readonly write: (text: string) => void
  /** Whether every request has its line; its record is kept in any case. */
  readonly requests: boolean
  readonly nowMs: () => number
}

/** Writes typed events as JSON lines, in batches. `flush` writes what waits. */
export function openLog({ write, requests, nowMs }: LogOptions): { log: EventLog; flush: () => void } {
  let waiting: string[] = []
  let dropped = 0
  let timer: NodeJS.Timeout | undefined

  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    if (dropped > 0)
      waiting.push(safeJson({ time: new Date(nowMs()).toISOString(), event: 'log_lines_dropped', dropped }))
    if (waiting.length === 0) return
    const text = `${waiting.join('\n')}\n`
    waiting = []
    dropped = 0
    write(text)
  }

  const log: EventLog = (event) => {
    if (event.event === 'request' && !requests) return
    if (waiting.length >= maxWaiting) {
      dropped += 1
      return
    }
    waiting.push(safeJson({ time: new Date(nowMs()).toISOString(), ...event }))
    timer ??= setTimeout(flush, flushMs).unref()
  }

  return { log, flush }
}
