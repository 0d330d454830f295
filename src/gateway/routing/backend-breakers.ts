import { UpstreamError, type AttemptOutcome } from '../../domain/upstream.ts'
import type { AttemptObserver } from '../ports.ts'
import type { CircuitBreaker, Ticket } from './circuit-breaker.ts'
import type { ContentKind } from './content-kind.ts'
import { AwaitedCall, leastSlowCalls, SlowCalls, type Pace } from './slow-calls.ts'

/** Whether a backend is slow is decided at most once in this time, milliseconds. */
const betweenChecksMs = 100

/** The caller and the kind of content that select a circuit breaker. */
export interface BreakerKey {
  readonly accountId: string
  /** Called only if the backend has answered some kind of content with an error of its own. */
  readonly contentKind: () => ContentKind
}

export interface BackendBreakersDeps {
  /** Monotonic clock, milliseconds. */
  readonly nowMs: () => number
  /** Epoch milliseconds. */
  readonly wallMs: () => number
  readonly newBreaker: (kind: ContentKind) => CircuitBreaker
}

/**
 * The circuit breakers of one backend: one for the whole backend, and one for each kind of content that it answered
 * with a server error. A server without vision that fails on images still gets text (contract 8.3).
 */
export class BackendBreakers {
  readonly overall: CircuitBreaker
  readonly slowCalls = new SlowCalls()
  lastFailure: { readonly outcome: AttemptOutcome; readonly atMs: number } | undefined
  readonly #deps: BackendBreakersDeps
  readonly #byKind = new Map<ContentKind, CircuitBreaker>()
  #checkedMs = -Infinity

  constructor(deps: BackendBreakersDeps) {
    this.#deps = deps
    this.overall = deps.newBreaker('plain')
  }

  /** Whether no breaker holds back any request. */
  get isClosed(): boolean {
    return this.overall.isPassable && this.#byKind.size === 0
  }

  /** Opens the breaker of the whole backend if its calls show that it is slow (contract 8.11). */
  noticeSlow(): void {
    if (this.slowCalls.count < leastSlowCalls || this.overall.reason !== undefined) return
    const nowMs = this.#deps.nowMs()
    if (nowMs - this.#checkedMs < betweenChecksMs) return
    this.#checkedMs = nowMs
    if (this.slowCalls.areSlow(nowMs, this.overall.accounts(nowMs))) this.overall.slow(nowMs)
  }

  /** The breaker that applies besides the whole backend's; undefined if that kind of content never failed. */
  breakerFor({ contentKind }: BreakerKey): CircuitBreaker | undefined {
    return this.#byKind.size === 0 ? undefined : this.#byKind.get(contentKind())
  }

  begin(breakerKey: BreakerKey, pace: Pace | undefined): AttemptObserver {
    return new ObservedAttempt(this, this.#deps, breakerKey, pace)
  }

  /** The breaker for the request's kind of content, created on demand; undefined for plain text. */
  makeBreakerFor({ contentKind }: BreakerKey): CircuitBreaker | undefined {
    const kind = contentKind()
    if (kind === 'plain') return undefined
    let breaker = this.#byKind.get(kind)
    if (breaker === undefined) this.#byKind.set(kind, (breaker = this.#deps.newBreaker(kind)))
    return breaker
  }
}

/** Reports one attempt to the breakers of one backend. Its probe is always released when it ends. */
class ObservedAttempt extends AwaitedCall implements AttemptObserver {
  readonly account: string
  readonly startedMs: number
  readonly pace: Pace | undefined
  readonly #breakers: BackendBreakers
  readonly #deps: BackendBreakersDeps
  readonly #key: BreakerKey
  readonly #whole: Ticket
  readonly #ofKind: { readonly breaker: CircuitBreaker; readonly ticket: Ticket } | undefined
  #isOver = false

  constructor(breakers: BackendBreakers, deps: BackendBreakersDeps, breakerKey: BreakerKey, pace: Pace | undefined) {
    super()
    this.#breakers = breakers
    this.#deps = deps
    this.#key = breakerKey
    this.account = breakerKey.accountId
    this.pace = pace
    const nowMs = deps.nowMs()
    this.startedMs = nowMs
    const breaker = breakers.breakerFor(breakerKey)
    this.#whole = breakers.overall.begin(nowMs)
    this.#ofKind = breaker && { breaker, ticket: breaker.begin(nowMs) }
    if (pace !== undefined) breakers.slowCalls.began(this)
  }

  sawAnswer(): void {
    const nowMs = this.#deps.nowMs()
    this.#breakers.overall.sawAnswer(this.#whole, nowMs)
    this.#ofKind?.breaker.sawAnswer(this.#ofKind.ticket, nowMs)
  }

  sawContent(): void {
    const nowMs = this.#deps.nowMs()
    const isLate = this.#breakers.slowCalls.answered(this, nowMs)
    this.#breakers.overall.sawContent(this.#whole, isLate, nowMs)
    this.#ofKind?.breaker.sawContent(this.#ofKind.ticket, isLate, nowMs)
  }

  lost(): void {
    this.#breakers.slowCalls.wasLate(this)
  }

  ended(error?: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#breakers.slowCalls.ended(this)
    if (error === undefined) this.#succeeded()
    else if (!(error instanceof UpstreamError) || error.blames === 'gateway') this.#release()
    else if (error.blames === 'request') this.#succeeded()
    else this.#failed(error)
  }

  #succeeded(): void {
    const nowMs = this.#deps.nowMs()
    const { accountId } = this.#key
    this.#breakers.overall.succeeded(this.#whole, accountId, nowMs)
    this.#ofKind?.breaker.succeeded(this.#ofKind.ticket, accountId, nowMs)
  }

  #failed(error: UpstreamError): void {
    const nowMs = this.#deps.nowMs()
    const { accountId } = this.#key
    this.#breakers.lastFailure = { outcome: error.outcome, atMs: this.#deps.wallMs() }
    const breaker = mayFollowContent(error) ? this.#breakers.makeBreakerFor(this.#key) : undefined
    if (breaker === undefined) {
      this.#ofKind?.breaker.release(this.#ofKind.ticket)
      this.#breakers.overall.failed(this.#whole, accountId, error, nowMs)
    } else {
      // A breaker that this failure created has no ticket from the start of the attempt.
      const ticket = this.#ofKind?.ticket ?? breaker.begin(nowMs)
      this.#breakers.overall.release(this.#whole)
      breaker.failed(ticket, accountId, error, nowMs)
    }
  }

  #release(): void {
    this.#breakers.overall.release(this.#whole)
    this.#ofKind?.breaker.release(this.#ofKind.ticket)
  }
}

/** Whether the server itself, not a gateway or proxy, read the request and failed on it. */
function mayFollowContent({ outcome, status }: UpstreamError): boolean {
  return outcome === 'server_error' && (status === undefined || status <= 501)
}
