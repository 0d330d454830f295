import type { BackendCondition, CoolingReason } from '../../domain/backend-condition.ts'
import type { Hold, HoldKind } from '../../domain/backend-controls.ts'
import { BoundedMap } from '../../domain/bounded-map.ts'
import type { Clock } from '../../domain/clock.ts'
import type { AttemptOutcome, UpstreamError } from '../../domain/upstream.ts'

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

/** Why a backend is passed by: it is left alone for a while, or an operator keeps it out. */
export type PassedByReason = CoolingReason | HoldKind

interface BackendHealth {
  failures: number
  /** How often in a row it was opened: each time it cools longer. */
  openings: number
  /** When it was opened first of these. */
  sinceMs: number
  coolUntilMs: number
  reason: CoolingReason
  /** While one request probes a backend whose cooling ended, others pass it by. */
  probingUntilMs: number
}

/** What a backend may be used for now. `untilMs` is `Infinity` where only an operator ends it. */
export type Availability =
  | { readonly usable: true }
  | { readonly usable: false; readonly reason: PassedByReason; readonly untilMs: number }

const noHolds: ReadonlyMap<string, Hold> = new Map()

/** Remembers which backends fail, for how long each is left alone (contract 5.2, 5.4), and which of them operators keep out. */
export class BackendsHealth {
  readonly #clock: Clock
  /** Between 0 and 1; spreads the ends of coolings so that they do not all come at once. */
  readonly #random: () => number
  readonly #byBackend = new BoundedMap<string, BackendHealth>(maxRemembered)
  readonly #lastFailures = new BoundedMap<string, { readonly outcome: AttemptOutcome; readonly atMs: number }>(
    maxRemembered,
  )
  /** In a place of its own: what an operator said is never forgotten to make room, nor by a success. */
  #holds = noHolds

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock
    this.#random = random
  }

  availability(backendId: string): Availability {
    if (this.#holds.size > 0) {
      const hold = this.#holds.get(backendId)
      if (hold !== undefined) return { usable: false, reason: hold.kind, untilMs: Number.POSITIVE_INFINITY }
    }
    const health = this.#byBackend.get(backendId)
    if (health === undefined) return { usable: true }
    const nowMs = this.#clock.nowMs()
    const untilMs = Math.max(health.coolUntilMs, health.probingUntilMs)
    return untilMs > nowMs ? { usable: false, reason: health.reason, untilMs } : { usable: true }
  }

  /** Takes these backends, and no others, out of use until it is told anew. What is under way there is not touched. */
  hold(holds: ReadonlyMap<string, Hold>): void {
    this.#holds = holds
  }

  /** Has a backend asked again at once, whatever it was left alone for; an operator's hold stands. */
  forgive(backendId: string): void {
    this.#byBackend.delete(backendId)
  }

  /** How a backend stands, for operators. */
  condition(backendId: string): BackendCondition {
    const health = this.#byBackend.get(backendId)
    const known = {
      backendId,
      failures: health?.failures ?? 0,
      lastFailure: this.#lastFailures.get(backendId),
    }
    const hold = this.#holds.get(backendId)
    if (hold !== undefined)
      return { ...known, state: hold.kind, reason: hold.kind, sinceMs: hold.sinceMs, untilMs: undefined }
    const found = this.availability(backendId)
    if (found.usable) return { ...known, state: 'usable', reason: undefined, sinceMs: undefined, untilMs: undefined }
    const { reason, untilMs } = found
    const state = reason === 'credentials' ? 'quarantined' : 'cooling'
    return { ...known, state, reason, sinceMs: health?.sinceMs, untilMs }
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
    this.#lastFailures.setLast(backendId, { outcome: error.outcome, atMs: nowMs })
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
    if (health.openings === 0) health.sinceMs = nowMs
    health.openings += 1
    health.coolUntilMs = nowMs + forMs
    health.reason = reason
  }

  #remember(backendId: string): BackendHealth {
    const known = this.#byBackend.get(backendId)
    const health = known ?? {
      failures: 0,
      openings: 0,
      sinceMs: 0,
      coolUntilMs: 0,
      reason: 'failing' as const,
      probingUntilMs: 0,
    }
    // Put last, so that the first of the map is the one longest untouched.
    this.#byBackend.setLast(backendId, health)
    return health
  }
}
