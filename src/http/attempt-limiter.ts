import type { Clock } from '../domain/clock.ts'
import { type KeyOwner, type LimiterWindow, ServiceError } from '../domain/errors.ts'
import { minuteMs } from '../domain/minute-log.ts'
import { WindowCounts } from '../domain/window-counts.ts'

/** Names counted at once. */
const maxNames = 50_000

/** What a limiter has left in its minute. */
export interface LimiterState extends LimiterWindow {
  readonly remaining: number
}

/** Counts what the plan does not: at most so many a minute for one name, in fixed minutes (contract 5.15, 6.10). */
export class AttemptLimiter {
  readonly #name: string
  readonly #perMinute: number
  readonly #whom: string
  readonly #clock: Clock
  readonly #counts = new WindowCounts(minuteMs, maxNames)

  /**
   * `name` is how the `RateLimit` fields call it; `whom` completes the sentence "… a minute are allowed on" for the person
   * who reads the refusal.
   */
  constructor(name: string, perMinute: number, whom: string, clock: Clock) {
    this.#name = name
    this.#perMinute = perMinute
    this.#whom = whom
    this.#clock = clock
  }

  /**
   * Counts one for a name, and gives what is left. @throws ServiceError `rate_limit_exceeded` where there were too many,
   * with `owner` where that is known
   */
  take(name: string, owner?: KeyOwner): LimiterState {
    const nowMs = this.#clock.monotonicMs()
    const { count, endsAtMs } = this.#counts.add(name, nowMs)
    const endsAt = Math.ceil((this.#clock.nowMs() + endsAtMs - nowMs) / 1000)
    const window = { name: this.#name, limit: this.#perMinute, unit: 'requests', endsAt } as const
    if (count <= this.#perMinute) return { ...window, remaining: this.#perMinute - count }
    const seconds = Math.min(60, Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000)))
    const words = { limit: this.#perMinute, plan: this.#whom, seconds }
    const facts = { retryAfterSeconds: seconds, words, window }
    throw new ServiceError('rate_limit_exceeded', owner === undefined ? facts : { ...facts, owner })
  }
}
