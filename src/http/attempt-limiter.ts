import { type KeyOwner, type LimiterWindow, ServiceError } from '../domain/errors.ts'
import type { Clock } from '../runtime/clock.ts'
import { minuteMs } from '../runtime/minute-log.ts'
import { WindowCounts } from '../runtime/window-counts.ts'

/** Maximum number of names counted at once. */
const maxNames = 50_000

/** What is left of a limit in the current minute. */
export interface LimiterState extends LimiterWindow {
  readonly remaining: number
}

/** Rate limit for what the plan does not count: per name and fixed minute (contract 5.15, 6.10). */
export class AttemptLimiter {
  readonly #name: string
  readonly #perMinute: number
  readonly #whom: string
  readonly #clock: Clock
  readonly #counts = new WindowCounts(minuteMs, maxNames)

  /**
   * `name` is the name in the `RateLimit` fields; `whom` completes the sentence "… a minute are allowed on" in the
   * error message.
   */
  constructor(name: string, perMinute: number, whom: string, clock: Clock) {
    this.#name = name
    this.#perMinute = perMinute
    this.#whom = whom
    this.#clock = clock
  }

  /**
   * Counts one for a name and returns what is left.
   * @throws ServiceError `rate_limit_exceeded` if there were too many, with `owner` if it is known
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
