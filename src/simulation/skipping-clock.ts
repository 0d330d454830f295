import { systemClock, type Clock, type Timer } from '../runtime/clock.ts'

/** The real clock, but a test can skip an hour: timers that are due in it run at its end. */
export class SkippingClock implements Clock {
  readonly #real = systemClock()
  readonly #waiting = new Set<{ readonly atMs: number; readonly timer: Timer; readonly run: () => void }>()
  #skippedMs = 0
  #steppedMs = 0

  nowMs(): number {
    return this.#real.nowMs() + this.#skippedMs + this.#steppedMs
  }

  monotonicMs(): number {
    return this.#real.monotonicMs() + this.#skippedMs
  }

  /** Sets the wall clock forward or back. */
  step(ms: number): void {
    this.#steppedMs += ms
  }

  /**
   * Skips to the start of the next minute of the monotonic clock, or of the next span of so many minutes: limits count
   * in such spans. No timer runs early.
   */
  startMinute(minutes = 1): void {
    const lengthMs = minutes * 60_000
    this.#skippedMs += lengthMs - (this.monotonicMs() % lengthMs)
  }

  after(delayMs: number, run: () => void): Timer {
    const due = {
      atMs: this.monotonicMs() + delayMs,
      timer: this.#real.after(delayMs, () => {
        this.#waiting.delete(due)
        run()
      }),
      run,
    }
    this.#waiting.add(due)
    return {
      cancel: () => {
        this.#waiting.delete(due)
        due.timer.cancel()
      },
    }
  }

  /**
   * Skips this many milliseconds at once, as if the machine had slept: timers that are due in them run at their end,
   * in order.
   */
  async skip(ms: number): Promise<void> {
    this.#skippedMs += ms
    const untilMs = this.monotonicMs()
    const due = [...this.#waiting].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)
    for (const timer of due) {
      // Another timer canceled it.
      if (!this.#waiting.delete(timer)) continue
      timer.timer.cancel()
      timer.run()
      await settled()
    }
  }
}

/** Resolves after sockets were read and written. */
function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5))
}
