import type { Backend } from '../ports.ts'
import type { BackendsHealth, PassedByReason } from './health.ts'

/** Each backend once, at most this many of them (contract 5.2). */
export const maxAttempts = 3

/** A backend that is not asked now, by a category that callers may read. */
interface PassedBy {
  readonly backend: string
  readonly reason: PassedByReason
}

/** Why no backend was left, for the error that says so. */
export interface Exhausted {
  /** When the first of those passed by may be asked again, epoch milliseconds: `Infinity` where operators keep all of them out; undefined where none was. */
  readonly soonestMs: number | undefined
  /** Those that were passed by, and why. */
  readonly passedBy: readonly PassedBy[]
}

/**
 * Walks the backends of one request in their configured order: each once, those that are cooling passed by, and after
 * a failure first those that do not fail together with it (contract 5.2).
 */
export class Candidates {
  readonly #left: Backend[]
  readonly #health: BackendsHealth
  /** Made with the first failure: most requests have none. */
  #failedDomains: Set<string> | undefined

  constructor(backends: readonly Backend[], health: BackendsHealth) {
    this.#left = [...backends]
    this.#health = health
  }

  /** The next backend to ask, or undefined when none is left. */
  next(): Backend | undefined {
    let chosen: Backend | undefined
    for (const backend of this.#left) {
      if (!this.#health.availability(backend.id).usable) continue
      if (this.#failedDomains?.has(backend.failureDomain) !== true) {
        chosen = backend
        break
      }
      chosen ??= backend
    }
    if (chosen !== undefined) this.#left.splice(this.#left.indexOf(chosen), 1)
    return chosen
  }

  failed(backend: Backend): void {
    this.#failedDomains ??= new Set()
    this.#failedDomains.add(backend.failureDomain)
  }

  /** Leaves only backends whose window is known to be larger than that of one whose window was too small. */
  keepLargerThan(backend: Backend): void {
    const tooSmall = backend.contextWindow
    const larger = this.#left.filter(({ contextWindow }) => {
      return contextWindow !== undefined && (tooSmall === undefined || contextWindow > tooSmall)
    })
    this.#left.splice(0, this.#left.length, ...larger)
  }

  /** Why the request cannot go on: what is still usable was only held back, and may be asked again at once. */
  exhausted(backends: readonly Backend[]): Exhausted {
    if (this.#left.some(({ id }) => this.#health.availability(id).usable)) return { soonestMs: undefined, passedBy: [] }
    let soonestMs: number | undefined
    const passedBy: PassedBy[] = []
    for (const { id } of backends) {
      const availability = this.#health.availability(id)
      if (availability.usable) continue
      passedBy.push({ backend: id, reason: availability.reason })
      if (soonestMs === undefined || availability.untilMs < soonestMs) soonestMs = availability.untilMs
    }
    return { soonestMs, passedBy }
  }
}
