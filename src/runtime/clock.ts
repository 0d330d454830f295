import { SetEntry, SwapRemoveSet } from './swap-remove-set.ts'

/** Time as a parameter, so that the whole service can run in a simulation (contract 35.1). */
export interface Clock {
  /**
   * Wall time, milliseconds since the Unix epoch. It jumps in either direction when the wall clock is corrected: only
   * for timestamps and windows that people see (records, expiry dates, months).
   */
  nowMs(): number
  /**
   * Milliseconds from an arbitrary start. Never goes back, never jumps with the wall clock, and stops while the machine
   * sleeps. For every duration, deadline, and sliding window. Meaningless to other processes.
   */
  monotonicMs(): number
  /**
   * Calls `run` once after `delayMs` during which this process could run: a pause of the process (SIGSTOP, a blocked
   * event loop) of more than a second does not count (contract 9.14). A timer never keeps the process alive.
   */
  after(delayMs: number, run: () => void): Timer
}

export interface Timer {
  cancel(): void
}

/** The longest delay of a Node timer. Longer ones would fire at once. */
const longestDelayMs = 2 ** 31 - 1
/**
 * Delays from here on are rounded up to the next tick: a limit of 30 s may become 30.1 s, at a tenth of the cost of an
 * exact timer.
 */
const coarseFromMs = 1_000
const tickMs = 100

/** A timer that fires later than this was delayed by a pause of the process. */
const pauseFromMs = 1_000

/** The time sources of the system clock. */
export interface TimeSources {
  readonly wallMs: () => number
  readonly monotonicMs: () => number
}

const systemTime: TimeSources = { wallMs: () => Date.now(), monotonicMs: () => performance.now() }

/** The clock of the machine. */
export function systemClock({ wallMs, monotonicMs }: TimeSources = systemTime): Clock {
  const coarse = new CoarseTimers(monotonicMs)
  return {
    nowMs: wallMs,
    monotonicMs,
    after(delayMs, run) {
      if (delayMs >= coarseFromMs) return coarse.after(delayMs, run)
      const dueMs = monotonicMs() + delayMs
      let late: NodeJS.Immediate | undefined
      const timer = setTimeout(
        () => {
          if (monotonicMs() - dueMs < pauseFromMs) run()
          // Sockets are read before `setImmediate` runs, so data that arrived during the pause counts.
          else late = setImmediate(run)
        },
        Math.max(delayMs, 0),
      )
      timer.unref()
      return {
        cancel() {
          clearTimeout(timer)
          if (late !== undefined) clearImmediate(late)
        },
      }
    },
  }
}

/** Holds many long timers, most of which are canceled long before they are due: one set per tick. */
class CoarseTimers {
  readonly #monotonicMs: () => number
  readonly #slots = new Map<number, SwapRemoveSet<CoarseTimer>>()
  #ticking: NodeJS.Timeout | undefined
  #tickedMs = 0
  /** The total time the process was paused. Slots are numbered in time without pauses. */
  #pausedMs = 0

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs
  }

  after(delayMs: number, run: () => void): Timer {
    this.#notePause()
    const slot = Math.ceil((this.#tickedMs - this.#pausedMs + Math.min(delayMs, longestDelayMs)) / tickMs)
    let timers = this.#slots.get(slot)
    if (timers === undefined) {
      timers = new SwapRemoveSet()
      this.#slots.set(slot, timers)
      this.#ticking ??= setInterval(() => this.#tick(), tickMs).unref()
    }
    const timer = new CoarseTimer(timers, run)
    timers.add(timer)
    return timer
  }

  #tick(): void {
    this.#notePause()
    const due = Math.floor((this.#tickedMs - this.#pausedMs) / tickMs)
    for (const [slot, timers] of this.#slots) {
      if (slot <= due || timers.size === 0) this.#slots.delete(slot)
      if (slot <= due) for (const timer of timers.all()) if (timers.has(timer)) timer.run()
    }
    if (this.#slots.size > 0) return
    clearInterval(this.#ticking)
    this.#ticking = undefined
  }

  /** Excludes a pause from the time that timers count. */
  #notePause(): void {
    const nowMs = this.#monotonicMs()
    const sinceMs = nowMs - this.#tickedMs
    if (this.#ticking !== undefined && sinceMs >= pauseFromMs) this.#pausedMs += sinceMs
    this.#tickedMs = nowMs
  }
}

class CoarseTimer extends SetEntry implements Timer {
  readonly #slot: SwapRemoveSet<CoarseTimer>
  readonly run: () => void

  constructor(slot: SwapRemoveSet<CoarseTimer>, run: () => void) {
    super()
    this.#slot = slot
    this.run = run
  }

  cancel(): void {
    this.#slot.delete(this)
  }
}
