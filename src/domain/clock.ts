/** Time as a parameter, so that the whole service can run in a simulation (architecture 5.7). */
export interface Clock {
  /** Milliseconds since the Unix epoch. Never goes back while the process lives, whatever the wall clock does. */
  nowMs(): number
  /** Calls `run` once after `delayMs`. A timer never keeps the process alive by itself. */
  after(delayMs: number, run: () => void): Timer
}

export interface Timer {
  cancel(): void
}

/** The longest delay that a Node timer keeps; above it the timer would fire at once. */
const longestDelayMs = 2 ** 31 - 1

/** The real clock: read once from the wall, then carried forward by the monotonic counter. */
export function systemClock(): Clock {
  const startedAtMs = Date.now() - performance.now()
  return {
    nowMs: () => startedAtMs + performance.now(),
    after(delayMs, run) {
      const timer = setTimeout(run, Math.min(Math.max(delayMs, 0), longestDelayMs))
      timer.unref()
      return { cancel: () => clearTimeout(timer) }
    },
  }
}
