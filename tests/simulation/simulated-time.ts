import type { Clock, Timer } from '../../src/runtime/clock.ts'

interface Waiting {
  readonly atMs: number
  /** Timers that are due at the same time run in the order in which they were set. */
  readonly number: number
  run: (() => void) | undefined
}

/** A clock that jumps from timer to timer: simulated time costs nothing, and a wait without a timer is detected. */
export class SimulatedTime implements Clock {
  #nowMs = 1_800_000_000_000
  #count = 0
  /** Sorted, the next one last. */
  readonly #waiting: Waiting[] = []

  nowMs(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return this.#nowMs - 1_799_999_000_000
  }

  after(delayMs: number, run: () => void): Timer {
    const timer: Waiting = { atMs: this.#nowMs + Math.max(0, delayMs), number: this.#count++, run }
    let place = 0
    // Thousands of canceled timers may wait, too, so the place is found by halving.
    for (let end = this.#waiting.length; place < end;) {
      const middle = (place + end) >>> 1
      if (this.#waiting[middle]!.atMs > timer.atMs) place = middle + 1
      else end = middle
    }
    this.#waiting.splice(place, 0, timer)
    return {
      cancel: () => {
        timer.run = undefined
      },
    }
  }

  /** The number of timers that neither ran nor were canceled. */
  get waiting(): number {
    return this.#waiting.filter(({ run }) => run !== undefined).length
  }

  /** Advances until the promise settles. @throws Error if no timer is left that could settle it */
  async until<Result>(promise: Promise<Result>): Promise<Result> {
    let isSettled = false
    const settle = (): void => {
      isSettled = true
    }
    promise.then(settle, settle)
    for (;;) {
      await promisesRan()
      if (isSettled) return promise
      const next = this.#next()
      if (next === undefined) throw new Error('it hangs: no timer is left')
      next()
    }
  }

  /** Runs all remaining timers. */
  async drain(): Promise<void> {
    await promisesRan()
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      next()
      await promisesRan()
    }
  }

  #next(): (() => void) | undefined {
    for (;;) {
      const timer = this.#waiting.pop()
      if (timer === undefined) return undefined
      if (timer.run === undefined) continue
      this.#nowMs = Math.max(this.#nowMs, timer.atMs)
      return timer.run
    }
  }
}

/** Resolves when everything that waits only for promises has run. */
function promisesRan(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
