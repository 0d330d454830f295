import { type KeyOwner, type LimiterWindow, ServiceError } from '../domain/errors.ts'
import type { Clock } from '../runtime/clock.ts'
import { counted } from '../runtime/counted.ts'
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
  readonly #scope: string
  readonly #clock: Clock
  readonly #counts = new WindowCounts(minuteMs, maxNames)

  /**
   * `name` is the name in the `RateLimit` fields; `scope` completes the error message "Rate limit reached: 30 requests
   * per minute …".
   */
  constructor(name: string, perMinute: number, scope: string, clock: Clock) {
    this.#name = name
    this.#perMinute = perMinute
    this.#scope = scope
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
    const words = { limit: counted(this.#perMinute, 'request'), scope: this.#scope, seconds }
    const facts = { retryAfterSeconds: seconds, words, window }
    throw new ServiceError('rate_limit_exceeded', owner === undefined ? facts : { ...facts, owner })
  }
}
