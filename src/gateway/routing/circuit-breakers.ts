import type { Hold } from '../../domain/backend-controls.ts'
import type { BackendState, SkipReason } from '../../domain/backend-state.ts'
import type { EventLog } from '../../domain/events.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { AttemptObserver } from '../ports.ts'
import { BackendBreakers, type BreakerKey } from './backend-breakers.ts'
import { ByBackend, type BackendKey } from './by-backend.ts'
import { CircuitBreaker } from './circuit-breaker.ts'
import type { Pace, SlowCalls } from './slow-calls.ts'

/** Whether a backend may be tried now. `untilMs` is epoch milliseconds, `Infinity` if only an operator can end it. */
export type Availability =
  | { readonly usable: true }
  | {
      readonly usable: false
      readonly reason: SkipReason
      readonly untilMs: number
      /** Whether a request without a usable backend may try it anyway (contract 7.7). */
      readonly isLastResort: boolean
    }

const usable: Availability = { usable: true }

export interface CircuitBreakersDeps {
  readonly clock: Clock
  /** Between 0 and 1. */
  readonly random: () => number
  readonly log: EventLog
}

/**
 * Decides which backends may be tried: circuit breakers by backend and credential, and operators' holds (contract
 * 7.5, 8.1). An account's own backend has its own id, so its failures affect nobody else (contract 29.1).
 */
export class CircuitBreakers {
  readonly #deps: CircuitBreakersDeps
  readonly #byBackend = new ByBackend<BackendBreakers>()
  /** Separate, because an operator's decision is never evicted to make room. */
  #holds: ReadonlyMap<string, Hold> = new Map()

  constructor(deps: CircuitBreakersDeps) {
    this.#deps = deps
  }

  /** Whether a backend may be tried: for plain text if no key is given. */
  availability(backendId: string, breakerKey?: BreakerKey): Availability {
    const hold = this.#holds.size === 0 ? undefined : this.#holds.get(backendId)
    if (hold !== undefined)
      return { usable: false, reason: hold.kind, untilMs: Number.POSITIVE_INFINITY, isLastResort: false }
    const breakers = this.#byBackend.get(backendId)
    if (breakers === undefined) return usable
    breakers.noticeSlow()
    if (breakers.isClosed) return usable
    const nowMs = this.#nowMs()
    const applying = [breakers.overall, breakerKey && breakers.breakerFor(breakerKey)].filter(
      (breaker) => breaker !== undefined,
    )
    const blocking = applying.find((breaker) => !breaker.isUsable(nowMs))
    if (blocking === undefined) return usable
    return {
      usable: false,
      reason: blocking.lastReason,
      untilMs: this.#wallMs(Math.max(blocking.untilMs, nowMs)),
      isLastResort: applying.every((breaker) => breaker.isLastResort(nowMs)),
    }
  }

  /** Whether the backend is down or fails often, so that retries there need a budget (contract 7.8). */
  isTroubled(backendId: string): boolean {
    return this.#byBackend.get(backendId)?.overall.isTroubled(this.#nowMs()) ?? false
  }

  /** Consecutive failures: the larger count of the whole backend and of the key's kind of content. */
  failuresInARow(backendId: string, breakerKey: BreakerKey): number {
    const breakers = this.#byBackend.get(backendId)
    if (breakers === undefined) return 0
    return Math.max(breakers.overall.failuresInARow, breakers.breakerFor(breakerKey)?.failuresInARow ?? 0)
  }

  /** The calls begun after the newest one that was answered in time (contract 7.34); undefined if there were no calls. */
  unanswered(backendId: string): Pick<SlowCalls, 'count' | 'sinceMs'> | undefined {
    return this.#byBackend.get(backendId)?.slowCalls
  }

  /**
   * Starts an attempt at this backend; the observer takes its events and its end. Without `pace` its first content says
   * nothing of the backend's speed.
   */
  begin(backend: BackendKey, breakerKey: BreakerKey, pace?: Pace): AttemptObserver {
    let breakers = this.#byBackend.getForCall(backend)
    if (breakers === undefined) {
      const { id } = backend
      breakers = new BackendBreakers({
        nowMs: () => this.#nowMs(),
        wallMs: () => this.#deps.clock.nowMs(),
        newBreaker: (contentKind) => this.#newBreaker(id, contentKind),
      })
      this.#byBackend.add(backend, breakers)
    }
    return breakers.begin(breakerKey, pace)
  }

  /**
   * Replaces the set of held backends, which get no requests. Running requests are not affected (contract 8.10, 24.8).
   */
  hold(holds: ReadonlyMap<string, Hold>): void {
    this.#holds = holds
  }

  /** Closes the backend's breakers and clears its failures; an operator's hold stays. */
  reset(backendId: string): void {
    this.#byBackend.delete(backendId)
  }

  /** The state of a backend, for operators. */
  condition(backendId: string): BackendState {
    const breakers = this.#byBackend.get(backendId)
    const failures = breakers?.overall.failuresInARow ?? 0
    const isTroubled = this.isTroubled(backendId)
    const known = { backendId, isTroubled, failures, lastFailure: breakers?.lastFailure }
    const hold = this.#holds.get(backendId)
    if (hold !== undefined)
      return { ...known, state: hold.kind, reason: hold.kind, sinceMs: hold.sinceMs, untilMs: undefined }
    const nowMs = this.#nowMs()
    const state = breakers?.overall.state(nowMs) ?? 'closed'
    if (breakers === undefined || state === 'closed')
      return { ...known, state: 'closed', reason: undefined, sinceMs: undefined, untilMs: undefined }
    const { reason, downSinceMs = nowMs, untilMs } = breakers.overall
    return { ...known, state, reason, sinceMs: this.#wallMs(downSinceMs), untilMs: this.#wallMs(untilMs) }
  }

  #newBreaker(backend: string, contentKind: string): CircuitBreaker {
    const { random, log } = this.#deps
    return new CircuitBreaker({
      random,
      onChange: (change, reason, downMs) =>
        change === 'opened'
          ? log({ event: 'backend_down', backend, contentKind, reason })
          : log({ event: 'backend_back', backend, contentKind, downMs: Math.round(downMs) }),
    })
  }

  #nowMs(): number {
    return this.#deps.clock.monotonicMs()
  }

  /** Converts a monotonic time to wall time. */
  #wallMs(monotonicMs: number): number {
    return this.#deps.clock.nowMs() + monotonicMs - this.#nowMs()
  }
}
