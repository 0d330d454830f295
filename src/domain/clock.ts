import { Bag } from './bag.ts'

/** Time as a parameter, so that the whole service can run in a simulation (architecture 5.7). */
export interface Clock {
  /**
   * Milliseconds since the Unix epoch. Never goes back while the process lives, whatever the wall clock does; after the
   * machine has slept it goes forward to what the wall says.
   */
  nowMs(): number
  /** Calls `run` once after `delayMs`. A timer never keeps the process alive by itself. */
  after(delayMs: number, run: () => void): Timer
}

export interface Timer {
  cancel(): void
}

/** The longest delay that a Node timer keeps; above it the timer would fire at once. */
const longestDelayMs = 2 ** 31 - 1
/** Delays from here on are kept to the next tick: a limit of 30 s may be 30.1 s, and costs a tenth of an exact timer. */
const coarseFromMs = 1_000
const tickMs = 100

/** How far the wall may be ahead before it is believed: corrections of the wall clock are smaller, a sleep is longer. */
const resyncFromMs = 1_000
/** The wall is asked this often at most: it is not wanted for every reading. */
const wallEveryMs = 50

/** What the real clock is made of: the wall, and a counter that never goes back and stands still while the machine sleeps. */
export interface TimeSources {
  readonly wallMs: () => number
  readonly monotonicMs: () => number
}

const systemTime: TimeSources = { wallMs: () => Date.now(), monotonicMs: () => performance.now() }

/** The real clock: read from the wall, carried forward by the monotonic counter, and set forward where the wall is ahead. */
export function systemClock({ wallMs, monotonicMs }: TimeSources = systemTime): Clock {
  let offsetMs = wallMs() - monotonicMs()
  let askedAtMs = Number.NEGATIVE_INFINITY
  const nowMs = (): number => {
    const countedMs = monotonicMs()
    if (countedMs - askedAtMs >= wallEveryMs) {
      askedAtMs = countedMs
      const aheadMs = wallMs() - offsetMs - countedMs
      if (aheadMs > resyncFromMs) offsetMs += aheadMs
    }
    return offsetMs + countedMs
  }
  // A delay is a length of time: it does not end early because the wall went forward.
  const coarse = new CoarseTimers(monotonicMs)
  return {
    nowMs,
    after(delayMs, run) {
      if (delayMs >= coarseFromMs) return coarse.after(delayMs, run)
      const timer = setTimeout(run, Math.max(delayMs, 0))
      timer.unref()
      return { cancel: () => clearTimeout(timer) }
    },
  }
}

/** Many long timers, most of which are cancelled long before they are due: one bag of them for each tick. */
class CoarseTimers {
  readonly #nowMs: () => number
  readonly #slots = new Map<number, Bag<CoarseTimer>>()
  #ticking: NodeJS.Timeout | undefined

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  after(delayMs: number, run: () => void): Timer {
    const slot = Math.ceil((this.#nowMs() + Math.min(delayMs, longestDelayMs)) / tickMs)
    let timers = this.#slots.get(slot)
    if (timers === undefined) {
      timers = new Bag()
      this.#slots.set(slot, timers)
      this.#ticking ??= setInterval(() => this.#tick(), tickMs).unref()
    }
    const timer = new CoarseTimer(timers, run)
    timers.add(timer)
    return timer
  }

  #tick(): void {
    const due = Math.floor(this.#nowMs() / tickMs)
    for (const [slot, timers] of this.#slots) {
      if (slot <= due || timers.size === 0) this.#slots.delete(slot)
      if (slot <= due) for (const timer of timers.all()) if (timer.place >= 0) timer.run()
    }
    if (this.#slots.size > 0) return
    clearInterval(this.#ticking)
    this.#ticking = undefined
  }
}

class CoarseTimer implements Timer {
  readonly #slot: Bag<CoarseTimer>
  readonly run: () => void
  place = -1

  constructor(slot: Bag<CoarseTimer>, run: () => void) {
    this.#slot = slot
    this.run = run
  }

  cancel(): void {
    this.#slot.delete(this)
  }
}
