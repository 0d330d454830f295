import type { SkippedBackend } from '../../domain/backend-state.ts'
import type { Backend } from '../ports.ts'
import type { BreakerKey } from './backend-breakers.ts'
import type { CircuitBreakers } from './circuit-breakers.ts'

/** Each backend is tried once, and at most this many in total (contract 7.5). */
export const maxAttempts = 3

/** Why no backend was left, for the error message. */
export interface Exhausted {
  /**
   * When the first of them can be tried again, epoch milliseconds: `Infinity` if operators hold all of them,
   * undefined if that is now (contract 24.11).
   */
  readonly soonestMs: number | undefined
  /** The backends that were skipped, and why. */
  readonly skipped: readonly SkippedBackend[]
}

/**
 * Chooses the backends of one request, each at most once: in the configured order, those with a closed breaker; after
 * a failure, other failure domains first; if none is left, once, the least bad of the others (contract 7.5-7.7). A
 * learned order would replace this class.
 */
export class Candidates {
  readonly #left: Backend[]
  readonly #breakers: CircuitBreakers
  readonly #breakerKey: BreakerKey
  /** Created on the first failure: most requests have none. */
  #failedDomains: Set<string> | undefined
  #askedLastResort = false

  constructor(backends: readonly Backend[], breakers: CircuitBreakers, breakerKey: BreakerKey) {
    this.#left = [...backends]
    this.#breakers = breakers
    this.#breakerKey = breakerKey
  }

  /** The next backend to try, or undefined if none is left. `mayAsk` is called for each candidate and can reject it. */
  next(mayAsk: (backend: Backend) => boolean = () => true): Backend | undefined {
    const chosen = this.#findUsable(mayAsk) ?? this.#takeLastResort(mayAsk)
    if (chosen !== undefined) this.#left.splice(this.#left.indexOf(chosen), 1)
    return chosen
  }

  /** Whether a usable backend is left. */
  get hasUsable(): boolean {
    return this.#left.some(({ id }) => this.#breakers.availability(id, this.#breakerKey).usable)
  }

  failed(backend: Backend): void {
    this.#failedDomains ??= new Set()
    this.#failedDomains.add(backend.failureDomain)
  }

  /** Removes backends whose context window is known to be at most this many tokens. */
  keepLargerThan(tokens: number | undefined): void {
    if (tokens === undefined) return
    const larger = this.#left.filter(({ contextWindow }) => contextWindow === undefined || contextWindow > tokens)
    this.#left.splice(0, this.#left.length, ...larger)
  }

  /** Why the request cannot continue. */
  exhausted(backends: readonly Backend[]): Exhausted {
    let soonestMs: number | undefined
    let isAtOnce = this.hasUsable
    const skipped: SkippedBackend[] = []
    for (const { id } of backends) {
      const availability = this.#breakers.availability(id, this.#breakerKey)
      if (availability.usable) continue
      skipped.push({ backend: id, reason: availability.reason })
      isAtOnce ||= availability.isLastResort
      if (soonestMs === undefined || availability.untilMs < soonestMs) soonestMs = availability.untilMs
    }
    return { soonestMs: isAtOnce ? undefined : soonestMs, skipped }
  }

  #findUsable(mayAsk: (backend: Backend) => boolean): Backend | undefined {
    const domains = this.#failedDomains
    const mayBe = (backend: Backend): boolean =>
      this.#breakers.availability(backend.id, this.#breakerKey).usable && mayAsk(backend)
    const elsewhere = domains && this.#left.find((backend) => !domains.has(backend.failureDomain) && mayBe(backend))
    return elsewhere ?? this.#left.find(mayBe)
  }

  /** The backend whose breaker lets requests through soonest. */
  #takeLastResort(mayAsk: (backend: Backend) => boolean): Backend | undefined {
    if (this.#askedLastResort) return undefined
    let leastBad: Backend | undefined
    let soonestMs = Number.POSITIVE_INFINITY
    for (const backend of this.#left) {
      const availability = this.#breakers.availability(backend.id, this.#breakerKey)
      if (availability.usable || !availability.isLastResort || availability.untilMs >= soonestMs) continue
      leastBad = backend
      soonestMs = availability.untilMs
    }
    if (leastBad === undefined || !mayAsk(leastBad)) return undefined
    this.#askedLastResort = true
    return leastBad
  }
}
