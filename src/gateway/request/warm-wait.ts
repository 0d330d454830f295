import { inOrder, type RequestRouting } from '../../domain/routing-policy.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Measure, SessionTurn } from '../cache/session-turn.ts'
import type { LoadShedder } from '../overload/load-shedder.ts'
import type { Backend } from '../ports.ts'
import type { BreakerKey } from '../routing/backend-breakers.ts'
import type { BackendStatistics } from '../routing/backend-statistics.ts'
import type { CircuitBreakers } from '../routing/circuit-breakers.ts'
import { measureWith } from '../routing/open-candidates.ts'
import type { PromptKind } from '../routing/prompt-kind.ts'
import { AttemptRun } from './attempt.ts'
import type { FailoverOptions } from './failover-deps.ts'

/** How often one request asks a backend again after it waited for it. */
const maxWaits = 2
/** Requests that wait for the same time ask at different moments within this one, milliseconds. */
const spreadMs = 250
/** How long to wait for the answer to another request's probe before looking again. */
const probeMs = 100
/** The largest share of the time that the request has left. */
const shareOfTime = 0.5

interface WarmWaitDeps {
  readonly clock: Clock
  readonly breakers: CircuitBreakers
  /** From 0 to 1. */
  readonly random: () => number
  readonly shedder?: LoadShedder | undefined
}

interface WarmWaitOptions {
  readonly session: SessionTurn
  readonly backends: readonly Backend[]
  readonly routing: RequestRouting
  readonly caller: BreakerKey
  readonly measure: Measure
  /** When the request must be answered, monotonic milliseconds. */
  readonly deadlineMs: number
}

/**
 * Waits for a backend that holds the session's cache and that named a short time to wait, if that is cheaper than
 * filling another cache (contract 45.6).
 */
export class WarmWait {
  readonly #deps: WarmWaitDeps
  readonly #options: WarmWaitOptions
  #waits = 0
  #waitedMs = 0

  constructor(deps: WarmWaitDeps, options: WarmWaitOptions) {
    this.#deps = deps
    this.#options = options
  }

  /**
   * The backend to ask instead of `other`, after a wait; undefined if `other` is to be asked. `pause` rejects if the
   * request ends in between.
   */
  async insteadOf(other: Backend, pause: (ms: number) => Promise<void>): Promise<Backend | undefined> {
    const { session, backends, routing, measure, deadlineMs } = this.#options
    const { clock, shedder } = this.#deps
    const warm = session.latestWarm(backends)
    if (warm === undefined || warm === other || this.#waits >= maxWaits || shedder?.sheds('retries') === true)
      return undefined
    const leftMs = (deadlineMs - clock.monotonicMs()) * shareOfTime
    const affordableMs = Math.min(session.affordableWaitMs(warm, other, routing.sort, measure), leftMs)
    const waitedBeforeMs = this.#waitedMs
    for (;;) {
      const waitMs = this.#waitMs(warm)
      if (waitMs === undefined || this.#waitedMs + waitMs > affordableMs) return undefined
      if (waitMs === 0) break
      this.#waitedMs += waitMs
      await pause(waitMs)
    }
    // Without a wait, it failed for another reason.
    if (this.#waitedMs === waitedBeforeMs) return undefined
    this.#waits += 1
    return warm
  }

  /** How long until the backend may be asked; undefined if that is not a matter of a time that it named. */
  #waitMs({ id }: Backend): number | undefined {
    const { clock, breakers, random } = this.#deps
    const availability = breakers.availability(id, this.#options.caller)
    if (availability.usable) return 0
    if (availability.reason !== 'rate') return undefined
    const waitMs = availability.untilMs - clock.nowMs()
    return waitMs > 0 ? waitMs + random() * spreadMs : probeMs
  }
}

/** Undefined if the request has no session, or its sessions do not stay anywhere. */
export function warmWaitFor(
  deps: WarmWaitDeps & { readonly statistics: BackendStatistics },
  { session, backends, routing = inOrder, totalMs }: FailoverOptions,
  caller: BreakerKey,
  kind: PromptKind,
): WarmWait | undefined {
  if (session?.isContinued !== true || routing.sticky === false || backends.length < 2) return undefined
  const measure = measureWith(deps.statistics, deps.clock, kind)
  const deadlineMs = deps.clock.monotonicMs() + totalMs
  return new WarmWait(deps, { session, backends, routing, caller, measure, deadlineMs })
}

/** Takes the place of the current attempt while a request waits, so that whatever ends the request ends the wait. */
export class WaitingRun extends AttemptRun<Backend> {
  readonly #stopped = Promise.withResolvers<never>()

  /** Resolves after this time; rejects when the request ends. */
  async wait(ms: number, clock: Clock): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = clock.after(ms, resolve)
    try {
      await this.until(promise)
    } finally {
      timer.cancel()
    }
  }

  /** Resolves with the promise; rejects when the request ends. */
  until<T>(promise: Promise<T>): Promise<T> {
    return Promise.race([promise, this.#stopped.promise])
  }

  override stop(error: Error): void {
    this.#stopped.reject(error)
  }
}
