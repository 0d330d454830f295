import type { SkippedBackend } from '../../domain/backend-state.ts'
import type { RequestRouting } from '../../domain/routing-policy.ts'
import type { Backend } from '../ports.ts'
import type { BreakerKey } from './backend-breakers.ts'
import type { BackendChoice } from './backend-choice.ts'
import type { BackendStatistics } from './backend-statistics.ts'
import type { CircuitBreakers } from './circuit-breakers.ts'
import { isNamed } from './routing-filters.ts'

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

export interface CandidatesOptions {
  /** In the configured order: an account's own first. */
  readonly backends: readonly Backend[]
  /** Those that probably cannot answer, which are asked last. */
  readonly doubtful?: ReadonlySet<Backend> | undefined
  readonly routing: RequestRouting
  readonly breakers: CircuitBreakers
  readonly breakerKey: BreakerKey
  readonly statistics: BackendStatistics
  /** Chooses among equally preferred backends; undefined if the configured order decides. */
  readonly choice: BackendChoice | undefined
  /** Of equally preferred backends, the one that the request's session stays at, if there is one (contract 45.2). */
  readonly pin?: ((backends: readonly Backend[]) => Backend | undefined) | undefined
}

/**
 * Chooses the backends of one request, each at most once: those with a closed breaker, those with room before those
 * that are full, and among them in the configured order or by `choice`; after a failure, other failure domains first.
 * If none is left, once, the least bad of the others (contract 7.5-7.7, 7.24).
 */
export class Candidates {
  readonly #left: Backend[]
  readonly #options: CandidatesOptions
  /** Created on the first failure: most requests have none. */
  #failedDomains: Set<string> | undefined
  /** The backend that was asked although it was not usable. */
  #lastResort: Backend | undefined

  constructor(options: CandidatesOptions) {
    this.#options = options
    this.#left = [...options.backends]
    if (options.routing.order !== undefined) this.#left.sort((one, other) => this.#groupOf(one) - this.#groupOf(other))
  }

  /** The next backend to try, or undefined if none is left. `mayAsk` is called for each candidate and can reject it. */
  next(mayAsk: (backend: Backend) => boolean = () => true): Backend | undefined {
    const chosen = this.#findPinned(mayAsk) ?? this.#findUnpinned(mayAsk) ?? this.#takeLastResort(mayAsk)
    if (chosen !== undefined) this.#left.splice(this.#left.indexOf(chosen), 1)
    return chosen
  }

  /** Whether a usable backend is left. */
  get hasUsable(): boolean {
    return this.#left.some((backend) => this.#isUsable(backend))
  }

  /** Whether one of them takes more calls. */
  get hasRoom(): boolean {
    return this.#left.some((backend) => this.#isUsable(backend) && !this.#options.statistics.isFull(backend.id))
  }

  /** Another backend is asked instead of the one that `next` returned last. */
  askInstead(asked: Backend, unasked: Backend): void {
    if (this.#lastResort === unasked) this.#lastResort = undefined
    this.#left.unshift(unasked)
    const at = this.#left.indexOf(asked)
    if (at >= 0) this.#left.splice(at, 1)
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
  exhausted(backends: readonly Backend[] = this.#options.backends): Exhausted {
    const { breakers, breakerKey } = this.#options
    let soonestMs: number | undefined
    let isAtOnce = this.hasUsable
    const skipped: SkippedBackend[] = []
    for (const { id } of backends) {
      const availability = breakers.availability(id, breakerKey)
      if (availability.usable) continue
      skipped.push({ backend: id, reason: availability.reason })
      isAtOnce ||= availability.isLastResort
      if (soonestMs === undefined || availability.untilMs < soonestMs) soonestMs = availability.untilMs
    }
    return { soonestMs: isAtOnce ? undefined : soonestMs, skipped }
  }

  /** The backends that come before one in the configured order; with a choice, all: none of them comes first. */
  comingBefore(backend: Backend): readonly Backend[] {
    const { backends, choice, routing } = this.#options
    const isOrdered = choice === undefined && routing.order === undefined
    return isOrdered ? backends.slice(0, backends.indexOf(backend)) : backends
  }

  /** The usable backends that come first for the next attempt: without a choice, the first of them is asked. */
  get preferred(): readonly Backend[] {
    return this.#firstGroup(this.#left.filter((backend) => this.#isUsable(backend)))
  }

  #isUsable({ id }: Backend): boolean {
    return this.#options.breakers.availability(id, this.#options.breakerKey).usable
  }

  /**
   * Among those that come first in any case: a session overrides no preference (contract 45.5). What a backend is known
   * to accept is an estimate that a session may exceed: a rejected call costs less than filling another cache.
   */
  #findPinned(mayAsk: (backend: Backend) => boolean): Backend | undefined {
    const { pin } = this.#options
    if (pin === undefined || this.#left.length < 2) return undefined
    const usable = this.#left.filter((backend) => this.#isUsable(backend))
    const pinned = pin(this.#firstGroup(usable, 0))
    return pinned !== undefined && mayAsk(pinned) ? pinned : undefined
  }

  #findUnpinned(mayAsk: (backend: Backend) => boolean): Backend | undefined {
    return this.#options.choice === undefined ? this.#findInOrder(mayAsk) : this.#findByChoice(mayAsk)
  }

  #findInOrder(mayAsk: (backend: Backend) => boolean): Backend | undefined {
    const { statistics } = this.#options
    const domains = this.#failedDomains
    const hasRoom = ({ id }: Backend): boolean => !statistics.isFull(id)
    const first = (isWanted: (backend: Backend) => boolean): Backend | undefined =>
      this.#left.find((backend) => isWanted(backend) && this.#isUsable(backend) && mayAsk(backend))
    const elsewhere = domains && first((backend) => !domains.has(backend.failureDomain) && hasRoom(backend))
    return elsewhere ?? first(hasRoom) ?? first(() => true)
  }

  #findByChoice(mayAsk: (backend: Backend) => boolean): Backend | undefined {
    let usable = this.#left.filter((backend) => this.#isUsable(backend))
    while (usable.length > 0) {
      const chosen = this.#options.choice!.choose(this.#firstGroup(usable))
      if (mayAsk(chosen)) return chosen
      usable = usable.filter((backend) => backend !== chosen)
    }
    return undefined
  }

  /** Those that come before all others: with room, in another failure domain, and so on. */
  #firstGroup(backends: readonly Backend[], fullWeight = 1e5): readonly Backend[] {
    if (backends.length < 2) return backends
    const domains = this.#failedDomains
    const { statistics } = this.#options
    let firstGroup = Infinity
    const groups = backends.map((backend) => {
      const isFull = statistics.isFull(backend.id)
      const hasFailed = domains?.has(backend.failureDomain) === true
      const group = this.#groupOf(backend) + Number(hasFailed) * 1e4 + Number(isFull) * fullWeight
      firstGroup = Math.min(firstGroup, group)
      return group
    })
    return backends.filter((_, index) => groups[index] === firstGroup)
  }

  /** Lower comes first: probably able, then named in `order`, then an account's own connection (contract 7.1). */
  #groupOf(backend: Backend): number {
    const { doubtful, routing } = this.#options
    const place = routing.order?.findIndex((name) => isNamed(backend, [name])) ?? 0
    const named = place < 0 ? routing.order!.length : place
    return Number(doubtful?.has(backend) === true) * 1e3 + named * 2 + Number(backend.owner === undefined)
  }

  /** The backend whose breaker lets requests through soonest. */
  #takeLastResort(mayAsk: (backend: Backend) => boolean): Backend | undefined {
    const { breakers, breakerKey } = this.#options
    if (this.#lastResort !== undefined) return undefined
    let leastBad: Backend | undefined
    let soonestMs = Number.POSITIVE_INFINITY
    for (const backend of this.#left) {
      const availability = breakers.availability(backend.id, breakerKey)
      if (availability.usable || !availability.isLastResort || availability.untilMs >= soonestMs) continue
      leastBad = backend
      soonestMs = availability.untilMs
    }
    if (leastBad === undefined || !mayAsk(leastBad)) return undefined
    this.#lastResort = leastBad
    return leastBad
  }
}
