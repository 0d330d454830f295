import type { Clock, Timer } from '../../../src/runtime/clock.ts'
import type { Timeline } from './timeline.ts'

/** A pause longer than this does not count for timers, as with the real clock. */
const pauseFromMs = 1_000

/** The machine's wall clock, which operators and time servers set. */
export class WallClock {
  readonly #timeline: Timeline
  readonly #startMs: number
  steppedMs = 0

  constructor(timeline: Timeline, startMs: number) {
    this.#timeline = timeline
    this.#startMs = startMs
  }

  nowMs(): number {
    return this.#startMs + this.#timeline.nowMs + this.steppedMs
  }
}

/** The clock of one process. It ends with the process, and waits while the process is paused. */
export class ProcessClock implements Clock {
  readonly #timeline: Timeline
  readonly #wall: WallClock
  #isDead = false
  /** Pauses so far that timers do not count. */
  #pausedMs = 0
  #resumesAtMs = 0

  constructor(timeline: Timeline, wall: WallClock) {
    this.#timeline = timeline
    this.#wall = wall
  }

  nowMs(): number {
    return this.#wall.nowMs()
  }

  monotonicMs(): number {
    return 1_000 + this.#timeline.nowMs
  }

  after(delayMs: number, run: () => void): Timer {
    let timer: Timer
    const wait = (ms: number, pausedBeforeMs: number): void => {
      timer = this.#timeline.after(ms, () => {
        if (this.#isDead) return
        const missedMs = this.#pausedMs - pausedBeforeMs
        const heldMs = this.#resumesAtMs - this.#timeline.nowMs
        if (missedMs > 0) wait(missedMs, this.#pausedMs)
        else if (heldMs > 0) wait(heldMs, this.#pausedMs)
        else run()
      })
    }
    wait(delayMs, this.#pausedMs)
    return { cancel: () => timer.cancel() }
  }

  /** Runs something that reaches the process from outside: at once, after its pause, or never. */
  deliver(run: () => void): void {
    const heldMs = this.#resumesAtMs - this.#timeline.nowMs
    if (this.#isDead) return
    if (heldMs > 0) this.#timeline.after(heldMs, () => this.deliver(run))
    else run()
  }

  /** Stops the process for a while, as SIGSTOP does. */
  pause(ms: number): void {
    this.#resumesAtMs = this.#timeline.nowMs + ms
    if (ms >= pauseFromMs) this.#pausedMs += ms
  }

  /** Nothing of the process runs anymore. */
  die(): void {
    this.#isDead = true
  }

  /** When its last pause ends or ended. */
  get resumesAtMs(): number {
    return this.#resumesAtMs
  }

  get isPaused(): boolean {
    return this.#resumesAtMs > this.#timeline.nowMs
  }

  get isDead(): boolean {
    return this.#isDead
  }
}
