import { UpstreamError, type AttemptOutcome } from '../../domain/upstream.ts'
import type { AttemptObserver } from '../attempt.ts'
import type { CircuitBreaker, Ticket } from './circuit-breaker.ts'
import type { ContentKind } from './content-kind.ts'

/** Who sends a request, and what kind of content it carries. */
export interface Asker {
  readonly accountId: string
  /** Called only where a backend has answered some kind of content with an error of its own. */
  readonly contentKind: () => ContentKind
}

export interface BackendBreakersParts {
  /** A reading of the monotonic clock, milliseconds. */
  readonly nowMs: () => number
  /** Epoch milliseconds. */
  readonly wallMs: () => number
  readonly newBreaker: (kind: ContentKind) => CircuitBreaker
}

/**
 * The breakers of one backend: one for the backend as a whole, and one for each kind of content that it answered with a
 * server error. A server without vision that fails on images goes on to get text (contract 8.3).
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

  /** Whether nothing keeps any request away. */
  get isClosed(): boolean {
    return this.whole.reason === undefined && this.#byKind.size === 0
  }

  /** The breaker that applies besides the whole backend's; undefined where that kind never failed. */
  breakerFor({ contentKind }: Asker): CircuitBreaker | undefined {
    return this.#byKind.size === 0 ? undefined : this.#byKind.get(contentKind())
  }

  begin(asker: Asker): AttemptObserver {
    return new ObservedAttempt(this, this.#parts, asker)
  }

  /** The breaker of the request's kind, made where there is none; undefined for plain text. */
  makeBreakerFor({ contentKind }: Asker): CircuitBreaker | undefined {
    const kind = contentKind()
    if (kind === 'plain') return undefined
    let breaker = this.#byKind.get(kind)
    if (breaker === undefined) this.#byKind.set(kind, (breaker = this.#parts.newBreaker(kind)))
    return breaker
  }
}

/** Tells the breakers of one backend how one attempt goes. Whatever happens, its probe is given back when it ends. */
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
      // Made by this very failure, it has no ticket of the attempt's beginning.
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

/** A server error that is no gateway's or proxy's: the server read the request and failed on it. */
function mayFollowContent({ outcome, status }: UpstreamError): boolean {
  return outcome === 'server_error' && (status === undefined || status <= 501)
}
