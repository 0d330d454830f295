import { uptime } from 'node:os'
import type { Clock } from '../domain/clock.ts'
import { type Moment, type Period, periodAt } from '../domain/usage.ts'

/** Corrections of the wall clock up to this size are followed at once. */
const smallMs = 1_000
/** A larger one is followed once it has lasted this long. */
const believedAfterMs = 3_600_000
/** While the wall clock is doubted, the time since boot is read this often at most. */
const lookEveryMs = 1_000

/**
 * Says which month is charged. Its time is the wall's, carried forward by the monotonic clock: a wall clock that is set by
 * more than a second turns no month until it has kept its new time for an hour. A sleep of the machine is no such step.
 */
export class QuotaCalendar {
  readonly #clock: Clock
  readonly #uptimeMs: () => number
  #offsetMs: number
  /** Time in which the machine slept, since boot. */
  #sleptMs: number
  #doubtedSinceMs: number | undefined
  #lookedMs = Number.NEGATIVE_INFINITY
  #period: Period

  /** `uptimeMs` counts sleep of the machine, and does not change with the wall clock. */
  constructor(clock: Clock, uptimeMs: () => number = systemUptimeMs(clock)) {
    this.#clock = clock
    this.#uptimeMs = uptimeMs
    this.#offsetMs = clock.nowMs() - clock.monotonicMs()
    this.#sleptMs = uptimeMs() - clock.monotonicMs()
    this.#period = periodAt(clock.nowMs())
  }

  now(): Moment {
    const wallMs = this.#clock.nowMs()
    const monotonicMs = this.#clock.monotonicMs()
    const aheadMs = wallMs - this.#offsetMs - monotonicMs
    if (Math.abs(aheadMs) <= smallMs) {
      this.#offsetMs += aheadMs
      this.#doubtedSinceMs = undefined
    } else {
      this.#doubt(aheadMs, monotonicMs)
    }
    const carriedMs = this.#offsetMs + monotonicMs
    if (carriedMs < this.#period.startMs || carriedMs >= this.#period.endMs) this.#period = periodAt(carriedMs)
    return { wallMs, monotonicMs, period: this.#period }
  }

  #doubt(aheadMs: number, monotonicMs: number): void {
    this.#doubtedSinceMs ??= monotonicMs
    if (monotonicMs - this.#doubtedSinceMs >= believedAfterMs) {
      this.#offsetMs += aheadMs
      this.#doubtedSinceMs = undefined
    } else if (monotonicMs - this.#lookedMs >= lookEveryMs) {
      this.#lookedMs = monotonicMs
      const sleptMs = this.#uptimeMs() - monotonicMs
      if (sleptMs - this.#sleptMs <= smallMs) return
      this.#offsetMs += sleptMs - this.#sleptMs
      this.#sleptMs = sleptMs
    }
  }
}

/** Only Linux stops its monotonic clock while the machine sleeps and says how long it has really been up. */
function systemUptimeMs(clock: Clock): () => number {
  return process.platform === 'linux' ? () => uptime() * 1000 : () => clock.monotonicMs()
}
