import { setTimeout as sleep } from 'node:timers/promises'
import type { EventLog } from '../domain/events.ts'
import { safeJson } from '../runtime/safe-text.ts'

/** Lines wait this long, so that many are written at once. */
const flushMs = 100
/** Lines that may wait to be written; further ones are counted and dropped, so that a full disk cannot fill the memory. */
const maxWaiting = 10_000
/** How long the end of the service waits for its last lines. */
const endLimitMs = 2_000

export interface LogOptions {
  /** Writes text, and resolves when more can follow. It is called once at a time. */
  readonly write: (text: string) => Promise<void>
  /** Whether every request has its line; its record is kept in any case. */
  readonly requests: boolean
  readonly nowMs: () => number
}

/** Writes typed events as JSON lines, in batches. `end` writes what waits, for at most 2 s. */
export function openLog({ write, requests, nowMs }: LogOptions): { log: EventLog; end: () => Promise<void> } {
  let waiting: string[] = []
  let dropped = 0
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined

  const writeWaiting = async (): Promise<void> => {
    while (waiting.length > 0) {
      if (dropped > 0)
        waiting.push(safeJson({ time: new Date(nowMs()).toISOString(), event: 'log_lines_dropped', dropped }))
      const text = `${waiting.join('\n')}\n`
      waiting = []
      dropped = 0
      await write(text)
    }
    writing = undefined
  }

  const flush = (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    if (waiting.length === 0) return writing ?? Promise.resolve()
    return (writing ??= writeWaiting())
  }

  const log: EventLog = (event) => {
    if (event.event === 'request' && !requests) return
    if (waiting.length >= maxWaiting) {
      dropped += 1
      return
    }
    waiting.push(safeJson({ time: new Date(nowMs()).toISOString(), ...event }))
    if (writing === undefined) timer ??= setTimeout(() => void flush(), flushMs).unref()
  }

  const end = async (): Promise<void> => {
    const limit = new AbortController()
    const passed = sleep(endLimitMs, undefined, { signal: limit.signal }).catch(() => {})
    await Promise.race([flush(), passed])
    limit.abort()
  }

  return { log, end }
}
