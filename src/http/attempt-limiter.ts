import { ServiceError } from '../domain/errors.ts'
import { minuteMs } from '../domain/minute-log.ts'
import { WindowCounts } from '../domain/window-counts.ts'

/** Names counted at once. */
const maxNames = 50_000

/** Counts what the plan does not: at most so many a minute for one name, in fixed minutes (contract 4.3, last row). */
export class AttemptLimiter {
  readonly #perMinute: number
  readonly #whom: string
  readonly #nowMs: () => number
  readonly #counts = new WindowCounts(minuteMs, maxNames)

  /** `whom` completes the sentence "… a minute are allowed on" for the person who reads the refusal. */
  constructor(perMinute: number, whom: string, nowMs: () => number) {
    this.#perMinute = perMinute
    this.#whom = whom
    this.#nowMs = nowMs
  }

  /** Counts one. @throws ServiceError `rate_limit_exceeded` where there were too many */
  take(name: string): void {
    const nowMs = this.#nowMs()
    const { count, endsAtMs } = this.#counts.add(name, nowMs)
    if (count <= this.#perMinute) return
    const seconds = Math.min(60, Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000)))
    const words = { limit: this.#perMinute, plan: this.#whom, seconds }
    throw new ServiceError('rate_limit_exceeded', { retryAfterSeconds: seconds, words })
  }
}
