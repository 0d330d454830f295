import type { Clock, Timer } from '../../src/runtime/clock.ts'

/** A clock that a test moves. */
export class ManualClock implements Clock {
  #nowMs = 1_800_000_000_000
  #steppedMs = 0
  #timers: { atMs: number; run: () => void }[] = []

  nowMs(): number {
    return this.#nowMs + this.#steppedMs
  }

  monotonicMs(): number {
    return this.#nowMs - 1_799_999_000_000
  }

  /** Sets the wall clock forward or back. */
  step(ms: number): void {
    this.#steppedMs += ms
  }

  /** Moves the time without running timers, like a pause of the process. */
  skip(ms: number): void {
    this.#nowMs += ms
  }

  after(delayMs: number, run: () => void): Timer {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), run }
    this.#timers.push(timer)
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== timer)
      },
    }
  }

  /** The number of pending timers. */
  get waiting(): number {
    return this.#timers.length
  }

  /** Advances by this many milliseconds, timer by timer, and lets promises settle between them. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms
    for (;;) {
      await settled()
      const next = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0]
      if (next === undefined) break
      this.#timers = this.#timers.filter((timer) => timer !== next)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.run()
    }
    this.#nowMs = untilMs
    await settled()
  }
}

/** Resolves when everything that waits only for promises has run. */
export function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
