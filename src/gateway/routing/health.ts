import { BoundedMap } from '../../domain/bounded-map.ts'
import type { Clock } from '../../domain/clock.ts'
import type { UpstreamError } from '../../domain/upstream.ts'

/** Consecutive failures after which a backend is left alone for a while. */
const failuresToOpen = 5
const firstCoolingMs = 30_000
const longestCoolingMs = 300_000
/** For a 429 without `Retry-After`. */
const unsaidRetryMs = 5_000
/** How long rejected credentials are left alone before one request tries them again (contract 5.4). */
const quarantineMs = 60_000
/** An upstream's `Retry-After` is believed within these bounds (contract 5.2). */
const shortestRetryMs = 1_000
const longestRetryMs = 300_000
/** Backends remembered at once; the one longest untouched is forgotten first. */
const maxRemembered = 10_000
/** A request that was let through to see whether a backend is back has this long to report. */
const probeLimitMs = 600_000

export type CoolingReason = 'credentials' | 'rate' | 'failing'

interface BackendHealth {
  failures: number
  /** How often in a row it was opened: each time it cools longer. */
  openings: number
  coolUntilMs: number
  reason: CoolingReason
  /** While one request probes a backend whose cooling ended, others pass it by. */
  probingUntilMs: number
}

/** What a backend may be used for now. */
export type Availability =
  | { readonly usable: true }
  | { readonly usable: false; readonly reason: CoolingReason; readonly untilMs: number }

/** Remembers which backends fail, and for how long each is left alone (contract 5.2, 5.4). */
export class BackendsHealth {
  readonly #clock: Clock
  /** Between 0 and 1; spreads the ends of coolings so that they do not all come at once. */
  readonly #random: () => number
  readonly #byBackend = new BoundedMap<string, BackendHealth>(maxRemembered)

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock
    this.#random = random
  }

  availability(backendId: string): Availability {
    const health = this.#byBackend.get(backendId)
    if (health === undefined) return { usable: true }
    const nowMs = this.#clock.nowMs()
    const untilMs = Math.max(health.coolUntilMs, health.probingUntilMs)
    return untilMs > nowMs ? { usable: false, reason: health.reason, untilMs } : { usable: true }
  }

  /** Says that a request goes to this backend: where its cooling has just ended, this one is the probe. */
  attempted(backendId: string): void {
    const health = this.#byBackend.get(backendId)
    if (health !== undefined && health.openings > 0) health.probingUntilMs = this.#clock.nowMs() + probeLimitMs
  }

  succeeded(backendId: string): void {
    this.#byBackend.delete(backendId)
  }

  /** Says that an attempt ended without telling anything about the backend: the caller left, or its content is at fault. */
  undecided(backendId: string): void {
    const health = this.#byBackend.get(backendId)
    if (health !== undefined) health.probingUntilMs = 0
  }

  failed(backendId: string, error: UpstreamError): void {
    const health = this.#remember(backendId)
    const nowMs = this.#clock.nowMs()
    // Requests that were under way when it was left alone fail together with the one that said so: that is no news.
    if (health.coolUntilMs > nowMs) return
    health.probingUntilMs = 0
    health.failures += 1
    if (error.outcome === 'rejected_credentials') {
      this.#cool(health, nowMs, quarantineMs, 'credentials')
    } else if (error.retryAfterMs !== undefined || error.outcome === 'rate_limited') {
      const askedMs = error.retryAfterMs ?? unsaidRetryMs
      this.#cool(health, nowMs, Math.min(longestRetryMs, Math.max(shortestRetryMs, askedMs)), 'rate')
    } else if (health.failures >= failuresToOpen || health.openings > 0) {
      const coolingMs = Math.min(longestCoolingMs, firstCoolingMs * (health.openings + 1))
      this.#cool(health, nowMs, coolingMs * (0.8 + 0.4 * this.#random()), 'failing')
    }
  }

  #cool(health: BackendHealth, nowMs: number, forMs: number, reason: CoolingReason): void {
    health.openings += 1
    health.coolUntilMs = nowMs + forMs
    health.reason = reason
  }

  #remember(backendId: string): BackendHealth {
    const known = this.#byBackend.get(backendId)
    const health = known ?? { failures: 0, openings: 0, coolUntilMs: 0, reason: 'failing', probingUntilMs: 0 }
    // Put last, so that the first of the map is the one longest untouched.
    this.#byBackend.setLast(backendId, health)
    return health
  }
}
