import { inOrder } from '../../domain/routing-policy.ts'
import type { Attempt } from '../../domain/upstream.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { LoadShedder } from '../overload/load-shedder.ts'
import type { Backend } from '../ports.ts'
import type { BreakerKey } from '../routing/backend-breakers.ts'
import type { BackendStatistics } from '../routing/backend-statistics.ts'
import { maxAttempts } from '../routing/candidates.ts'
import type { CircuitBreakers } from '../routing/circuit-breakers.ts'
import type { PromptKind } from '../routing/prompt-kind.ts'
import type { FailoverOptions } from './failover-deps.ts'
import { isLimited } from './request-retries.ts'

/** The longest time that a backend may name to be asked again. */
const longestMs = 2_000
/** Added to the wait, milliseconds: a timer can end a little before the breaker's time. */
const marginMs = 20
/** After a dropped connection, requests ask again at different moments within this time, milliseconds. */
const spreadMs = 250
/** The largest share of the time that the request has left. */
const shareOfTime = 0.25

interface ShortWaitDeps {
  readonly clock: Clock
  readonly breakers: CircuitBreakers
  readonly statistics: BackendStatistics
  /** From 0 to 1. */
  readonly random: () => number
  readonly shedder?: LoadShedder | undefined
}

/**
 * Waits, once, for a backend that rejected the request and named a time of at most 2 s, if that is better than another
 * backend: with `order` if the other one has another model, with any other sort if it is expected to be slower. If no
 * other backend is left, also for one that dropped the connection before content (contract 7.33).
 */
export class ShortWait {
  readonly #deps: ShortWaitDeps
  readonly #options: FailoverOptions
  readonly #caller: BreakerKey
  readonly #kind: PromptKind
  readonly #deadlineMs: number
  #hasWaited = false

  constructor(deps: ShortWaitDeps, options: FailoverOptions, caller: BreakerKey, kind: PromptKind) {
    this.#deps = deps
    this.#options = options
    this.#caller = caller
    this.#kind = kind
    this.#deadlineMs = deps.clock.monotonicMs() + options.totalMs
  }

  /**
   * The backend to ask instead of `next`, after a wait; undefined if `next` is to be asked, which is undefined if none
   * is left. `pause` rejects if the request ends in between.
   */
  async insteadOf(
    next: Backend | undefined,
    attempts: readonly Attempt[],
    pause: (ms: number) => Promise<void>,
  ): Promise<Backend | undefined> {
    const { clock, breakers, shedder } = this.#deps
    if (isLimited(this.#options.request.isRetry, shedder)) return undefined
    const failed = attempts.at(-1)
    const backend = this.#options.backends.find(({ id }) => id === failed?.backend)
    if (backend === undefined || failed === undefined || this.#hasWaited) return undefined
    if (attempts.filter((attempt) => attempt.backend === backend.id).length > 1) return undefined
    if (next === undefined && attempts.length >= maxAttempts) return undefined
    const waitMs = this.#waitMs(backend, failed, next)
    const leftMs = (this.#deadlineMs - clock.monotonicMs()) * shareOfTime
    if (waitMs === undefined || waitMs > Math.min(longestMs, leftMs)) return undefined
    if (next !== undefined && !this.#isBetter(backend, next, waitMs)) return undefined
    this.#hasWaited = true
    await pause(waitMs + marginMs)
    // Another request may be the probe, which is the only call to the backend until it is answered (contract 8.7).
    return breakers.availability(backend.id, this.#caller).usable ? backend : undefined
  }

  /** How long until the backend may be asked again; undefined if it did not say so. */
  #waitMs({ id }: Backend, { outcome }: Attempt, next: Backend | undefined): number | undefined {
    const { clock, breakers, random } = this.#deps
    const availability = breakers.availability(id, this.#caller)
    if (availability.usable) return outcome === 'reset' && next === undefined ? random() * spreadMs : undefined
    const waitMs = availability.untilMs - clock.nowMs()
    return availability.reason === 'rate' && waitMs > 0 ? waitMs : undefined
  }

  #isBetter(backend: Backend, next: Backend, waitMs: number): boolean {
    const { sort } = this.#options.routing ?? inOrder
    // The order prefers one model to another. Of the same model, the backend that answers now is the better one.
    if (sort === 'order') return backend.model !== next.model
    const { clock, statistics } = this.#deps
    const [own, other] = [backend, next].map(
      ({ id }) => statistics.read(id, this.#kind, clock.monotonicMs()).firstContentMs,
    )
    return own !== undefined && other !== undefined && waitMs + own < other
  }
}
