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
/** Maximum number of backends or endpoints, of all accounts together; the one updated longest ago is evicted first. */
const maxRemembered = 10_000

interface LearnedEndpoint {
  /** The endpoint's own dialect, extended by the fields that it rejected. */
  readonly dialect?: Dialect
  readonly isMissing?: boolean
}

interface LearnedBackend {
  readonly lacks?: ReadonlySet<Need>
}

interface LearnedWindow {
  readonly windowTokens: number
}

interface Learned {
  readonly endpoints: ExpiringCache<LearnedEndpoint>
  readonly backends: ExpiringCache<LearnedBackend>
  readonly windows: ExpiringCache<LearnedWindow>
  /** Those of backends that accounts own, separate so that no account makes the service forget the others. */
  readonly ownedWindows: ExpiringCache<LearnedWindow>
}

/**
 * Limits learned from backends' rejections: optional fields that they do not accept, missing capabilities, context
 * windows, and missing endpoints (contract 7.15).
 *
 * Rejected fields and missing endpoints are left out at once. A missing capability only moves a backend to the end.
 * Each of these rejections can be caused by what a caller wrote, such as an invalid value, so it applies only to requests of the
 * same account. Only the context window, which the provider states as a number, applies to all.
 */
export class LearnedLimits {
  readonly #learned: Learned
  readonly #accountId: string
  readonly #clock: Clock

  constructor(clock: Clock, accountId = '', learned?: Learned) {
    this.#learned = learned ?? {
      endpoints: new ExpiringCache(clock),
      backends: new ExpiringCache(clock),
      windows: new ExpiringCache(clock),
      ownedWindows: new ExpiringCache(clock),
    }
    this.#accountId = accountId
    this.#clock = clock
  }

  /** What applies to the requests of one account. */
  of(accountId: string): LearnedLimits {
    return new LearnedLimits(this.#clock, accountId, this.#learned)
  }

  /** The endpoint's current dialect. */
  dialectOf(endpoint: Backend): Dialect {
    const { endpoints } = this.#learned
    return endpoints.isEmpty
      ? endpoint.dialect
      : (endpoints.get(this.#endpointKey(endpoint))?.dialect ?? endpoint.dialect)
  }

  isMissing(endpoint: Backend): boolean {
    const { endpoints } = this.#learned
    return !endpoints.isEmpty && endpoints.get(this.#endpointKey(endpoint))?.isMissing === true
  }

  /** Whether anything was learned about which requests the backend cannot answer. */
  knows(backend: Backend): boolean {
    const { backends } = this.#learned
    const windows = this.#windowsOf(backend)
    const knowsLack = !backends.isEmpty && backends.get(this.#key(backend)) !== undefined
    return knowsLack || (!windows.isEmpty && windows.get(backend.id) !== undefined)
  }

  lacks(backend: Backend, need: Need): boolean {
    return this.#learned.backends.get(this.#key(backend))?.lacks?.has(need) === true
  }

  /** The context window in tokens, declared or learned from a rejection. */
  windowOf(backend: Backend): number | undefined {
    return backend.contextWindow ?? this.#windowsOf(backend).get(backend.id)?.windowTokens
  }

  learnFields(endpoint: Backend, fields: readonly string[]): void {
    const dialect = withRejectedFields(this.dialectOf(endpoint), fields)
    this.#learned.endpoints.add(this.#endpointKey(endpoint), { dialect })
  }

  learnMissing(endpoint: Backend): void {
    this.#learned.endpoints.add(this.#endpointKey(endpoint), { isMissing: true })
  }

  learnLack(backend: Backend, need: Need): void {
    const { backends } = this.#learned
    const key = this.#key(backend)
    backends.add(key, { lacks: new Set([...(backends.get(key)?.lacks ?? []), need]) })
  }

  learnWindow(backend: Backend, windowTokens: number): void {
    this.#windowsOf(backend).add(backend.id, { windowTokens })
  }

  #windowsOf({ owner }: Backend): ExpiringCache<LearnedWindow> {
    return owner === undefined ? this.#learned.windows : this.#learned.ownedWindows
  }

  #key({ id }: Backend): string {
    return `${this.#accountId} ${id}`
  }

  #endpointKey(endpoint: Backend): string {
    return `${endpoint.format} ${this.#key(endpoint)}`
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
