import type { Need } from '../../domain/upstream.ts'
import type { Dialect } from '../../formats/format.ts'
import { withRejectedFields } from '../../formats/rejections/optional-fields.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Backend } from '../ports.ts'

/**
 * How long a learned limit applies; then the backend is tried without it, because servers are updated (contract
 * 7.15).
 */
const holdsForMs = 15 * 60_000
/** Maximum number of backends and endpoints; the one updated longest ago is evicted first. */
const maxRemembered = 10_000

interface LearnedEndpoint {
  /** The endpoint's own dialect, extended by the fields that it rejected. */
  readonly dialect?: Dialect
  readonly isMissing?: boolean
}

interface LearnedBackend {
  readonly lacks?: ReadonlySet<Need>
  readonly windowTokens?: number
}

/**
 * Limits learned from backends' rejections: optional fields that they do not accept, missing capabilities, context
 * windows, and missing endpoints (contract 7.15).
 *
 * Rejected fields and missing endpoints are left out at once. A missing capability only moves a backend to the end: a
 * rejection may repeat what a caller wrote, and no caller may take a backend away from others.
 */
export class LearnedLimits {
  readonly #endpoints: ExpiringCache<LearnedEndpoint>
  readonly #backends: ExpiringCache<LearnedBackend>

  constructor(clock: Clock) {
    this.#endpoints = new ExpiringCache(clock)
    this.#backends = new ExpiringCache(clock)
  }

  /** The endpoint's current dialect. */
  dialectOf(endpoint: Backend): Dialect {
    return this.#endpoints.isEmpty
      ? endpoint.dialect
      : (this.#endpoints.get(keyOf(endpoint))?.dialect ?? endpoint.dialect)
  }

  isMissing(endpoint: Backend): boolean {
    return !this.#endpoints.isEmpty && this.#endpoints.get(keyOf(endpoint))?.isMissing === true
  }

  /** Whether anything was learned about which requests the backend cannot answer. */
  knows({ id }: Backend): boolean {
    return !this.#backends.isEmpty && this.#backends.get(id) !== undefined
  }

  lacks({ id }: Backend, need: Need): boolean {
    return this.#backends.get(id)?.lacks?.has(need) === true
  }

  /** The context window in tokens, declared or learned from a rejection. */
  windowOf({ id, contextWindow }: Backend): number | undefined {
    return contextWindow ?? this.#backends.get(id)?.windowTokens
  }

  learnFields(endpoint: Backend, fields: readonly string[]): void {
    this.#endpoints.add(keyOf(endpoint), { dialect: withRejectedFields(this.dialectOf(endpoint), fields) })
  }

  learnMissing(endpoint: Backend): void {
    this.#endpoints.add(keyOf(endpoint), { isMissing: true })
  }

  learnLack({ id }: Backend, need: Need): void {
    this.#backends.add(id, { lacks: new Set([...(this.#backends.get(id)?.lacks ?? []), need]) })
  }

  learnWindow({ id }: Backend, windowTokens: number): void {
    this.#backends.add(id, { windowTokens })
  }
}

/** Learned values by key; all values of one key expire together, `holdsForMs` after the last update. */
class ExpiringCache<Value extends object> {
  readonly #clock: Clock
  readonly #byKey = new BoundedMap<string, { readonly value: Value; readonly untilMs: number }>(maxRemembered)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isEmpty(): boolean {
    return this.#byKey.size === 0
  }

  get(key: string): Value | undefined {
    const found = this.#byKey.get(key)
    return found === undefined || found.untilMs <= this.#clock.monotonicMs() ? undefined : found.value
  }

  add(key: string, learned: Value): void {
    const value = { ...this.get(key), ...learned }
    this.#byKey.setLast(key, { value, untilMs: this.#clock.monotonicMs() + holdsForMs })
  }
}

function keyOf({ id, format }: Backend): string {
  return `${format} ${id}`
}
