import { uptime } from 'node:os'
import { type Moment, type Period, periodAt } from '../../domain/account-meter.ts'
import type { Clock } from '../../runtime/clock.ts'

/** Wall clock corrections up to this size apply immediately. */
const smallMs = 1_000
/** A larger correction applies once it has lasted this long. */
const believedAfterMs = 3_600_000
/** How often the time since boot is read at most while the wall clock is in doubt. */
const lookEveryMs = 1_000

/**
 * Determines which month is charged. Its time is the wall clock's, carried forward by the monotonic clock: if the wall
 * clock is set by more than a second, the month does not change until the new time has held for an hour. A machine's
 * sleep is not such a step (contract 5.14).
 */
export class QuotaCalendar {
  readonly #clock: Clock
  readonly #uptimeMs: () => number
  #offsetMs: number
  /** Time the machine has slept since boot. */
  #sleptMs: number
  #doubtedSinceMs: number | undefined
  #lookedMs = Number.NEGATIVE_INFINITY
  #period: Period
  #carriedMs: number

  /** `uptimeMs` includes the machine's sleep, and does not change with the wall clock. */
  constructor(clock: Clock, uptimeMs: () => number = systemUptimeMs(clock)) {
    this.#clock = clock
    this.#uptimeMs = uptimeMs
    this.#offsetMs = clock.nowMs() - clock.monotonicMs()
    this.#sleptMs = uptimeMs() - clock.monotonicMs()
    this.#period = periodAt(clock.nowMs())
    this.#carriedMs = clock.nowMs()
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
    this.#carriedMs = carriedMs
    if (carriedMs < this.#period.startMs || carriedMs >= this.#period.endMs) this.#period = periodAt(carriedMs)
    return { wallMs, monotonicMs, period: this.#period }
  }

  /** The wall clock without its doubtful steps, epoch milliseconds: what the windows of budgets are counted by. */
  nowMs(): number {
    this.now()
    return this.#carriedMs
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

/** Only Linux both stops its monotonic clock during sleep and reports how long it has really been up. */
function systemUptimeMs(clock: Clock): () => number {
  return process.platform === 'linux' ? () => uptime() * 1000 : () => clock.monotonicMs()
}
