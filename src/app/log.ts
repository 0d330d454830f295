import { setTimeout as sleep } from 'node:timers/promises'
import type { EventLog } from '../domain/events.ts'
import { safeJson } from '../runtime/safe-text.ts'

/** How long lines are collected before they are written together. */
const flushMs = 100
/**
 * Maximum number of waiting lines. Further ones are counted and dropped, so that a full disk cannot fill the memory.
 */
const maxWaiting = 10_000
/** How long shutdown waits for the last lines. */
const endLimitMs = 2_000

export interface LogOptions {
  /** Resolves when more text can follow. Calls never overlap. */
  readonly write: (text: string) => Promise<void>
  /** Whether every request gets a line. Its record is stored in any case. */
  readonly requests: boolean
  /** The number of this worker, if several share one log. */
  readonly worker?: number | undefined
  readonly nowMs: () => number
}

/** Writes typed events as JSON lines, in batches (contract 32.9). `end` writes the waiting lines, for at most 2 s. */
export function openLog({ write, requests, worker, nowMs }: LogOptions): { log: EventLog; end: () => Promise<void> } {
  const source = worker === undefined ? {} : { worker }
  const writeLine = (event: object): string => safeJson({ time: new Date(nowMs()).toISOString(), ...source, ...event })
  let waiting: string[] = []
  let dropped = 0
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined

  const writeWaiting = async (): Promise<void> => {
    while (waiting.length > 0) {
      if (dropped > 0) waiting.push(writeLine({ event: 'log_lines_dropped', dropped }))
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
    waiting.push(writeLine(event))
    if (writing === undefined) timer ??= setTimeout(() => void flush(), flushMs).unref()
  }

  const end = async (): Promise<void> => {
    const limit = new AbortController()
    const timeout = sleep(endLimitMs, undefined, { signal: limit.signal }).catch(() => {})
    await Promise.race([flush(), timeout])
    limit.abort()
  }

  return { log, end }
}
