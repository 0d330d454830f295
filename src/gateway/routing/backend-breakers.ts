import { UpstreamError, type AttemptOutcome } from '../../domain/upstream.ts'
import type { AttemptObserver } from '../attempt.ts'
import type { CircuitBreaker, Ticket } from './circuit-breaker.ts'
import type { ContentKind } from './content-kind.ts'

/** The caller and the kind of content that select a circuit breaker. */
export interface Asker {
  readonly accountId: string
  /** Called only if the backend has answered some kind of content with an error of its own. */
  readonly contentKind: () => ContentKind
}

export interface BackendBreakersParts {
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
  readonly whole: CircuitBreaker
  lastFailure: { readonly outcome: AttemptOutcome; readonly atMs: number } | undefined
  readonly #parts: BackendBreakersParts
  readonly #byKind = new Map<ContentKind, CircuitBreaker>()

  constructor(parts: BackendBreakersParts) {
    this.#parts = parts
    this.whole = parts.newBreaker('plain')
  }

  /** Whether no breaker holds back any request. */
  get isClosed(): boolean {
    return this.whole.reason === undefined && this.#byKind.size === 0
  }

  /** The breaker that applies besides the whole backend's; undefined if that kind of content never failed. */
  breakerFor({ contentKind }: Asker): CircuitBreaker | undefined {
    return this.#byKind.size === 0 ? undefined : this.#byKind.get(contentKind())
  }

  begin(asker: Asker): AttemptObserver {
    return new ObservedAttempt(this, this.#parts, asker)
  }

  /** The breaker for the request's kind of content, created on demand; undefined for plain text. */
  makeBreakerFor({ contentKind }: Asker): CircuitBreaker | undefined {
    const kind = contentKind()
    if (kind === 'plain') return undefined
    let breaker = this.#byKind.get(kind)
    if (breaker === undefined) this.#byKind.set(kind, (breaker = this.#parts.newBreaker(kind)))
    return breaker
  }
}

/** Reports one attempt to the breakers of one backend. Its probe is always released when it ends. */
class ObservedAttempt implements AttemptObserver {
  readonly #breakers: BackendBreakers
  readonly #parts: BackendBreakersParts
  readonly #asker: Asker
  readonly #whole: Ticket
  readonly #ofKind: { readonly breaker: CircuitBreaker; readonly ticket: Ticket } | undefined
  #isOver = false

  constructor(breakers: BackendBreakers, parts: BackendBreakersParts, asker: Asker) {
    this.#breakers = breakers
    this.#parts = parts
    this.#asker = asker
    const nowMs = parts.nowMs()
    const breaker = breakers.breakerFor(asker)
    this.#whole = breakers.whole.begin(nowMs)
    this.#ofKind = breaker && { breaker, ticket: breaker.begin(nowMs) }
  }

  sawAnswer(): void {
    this.#breakers.whole.sawAnswer(this.#whole)
    this.#ofKind?.breaker.sawAnswer(this.#ofKind.ticket)
  }

  ended(error?: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    if (error === undefined) this.#succeeded()
    else if (!(error instanceof UpstreamError) || error.blames === 'gateway') this.#release()
    else if (error.blames === 'request') this.#succeeded()
    else this.#failed(error)
  }

  #succeeded(): void {
    const nowMs = this.#parts.nowMs()
    const { accountId } = this.#asker
    this.#breakers.whole.succeeded(this.#whole, accountId, nowMs)
    this.#ofKind?.breaker.succeeded(this.#ofKind.ticket, accountId, nowMs)
  }

  #failed(error: UpstreamError): void {
    const nowMs = this.#parts.nowMs()
    const { accountId } = this.#asker
    this.#breakers.lastFailure = { outcome: error.outcome, atMs: this.#parts.wallMs() }
    const breaker = mayFollowContent(error) ? this.#breakers.makeBreakerFor(this.#asker) : undefined
    if (breaker === undefined) {
      this.#ofKind?.breaker.release(this.#ofKind.ticket)
      this.#breakers.whole.failed(this.#whole, accountId, error, nowMs)
    } else {
      // A breaker that this failure created has no ticket from the start of the attempt.
      const ticket = this.#ofKind?.ticket ?? breaker.begin(nowMs)
      this.#breakers.whole.release(this.#whole)
      breaker.failed(ticket, accountId, error, nowMs)
    }
  }

  #release(): void {
    this.#breakers.whole.release(this.#whole)
    this.#ofKind?.breaker.release(this.#ofKind.ticket)
  }
}

/** Whether the server itself, not a gateway or proxy, read the request and failed on it. */
function mayFollowContent({ outcome, status }: UpstreamError): boolean {
  return outcome === 'server_error' && (status === undefined || status <= 501)
}
