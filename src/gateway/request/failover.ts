import type { SkippedBackend } from '../../domain/backend-state.ts'
import type { Conversation } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import type { RequestOutcome } from '../../domain/requests.ts'
import { traceHeader } from '../../domain/trace-header.ts'
import { UpstreamError, type Attempt, type Need } from '../../domain/upstream.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Lane } from '../lanes/lane.ts'
import type { AllowedRequest, AttemptTrace, Backend } from '../ports.ts'
import type { BreakerKey } from '../routing/backend-breakers.ts'
import { Candidates, maxAttempts } from '../routing/candidates.ts'
import { needsOf } from '../routing/capable-backends.ts'
import type { CircuitBreakers } from '../routing/circuit-breakers.ts'
import { contentKindOf, type ContentKind } from '../routing/content-kind.ts'
import { contentRejected, notCapable } from '../routing/rejection-errors.ts'
import type { RetryBudget } from '../routing/retry-budget.ts'
import type { AnswerSource } from './answer-source.ts'
import { attemptRecord, logConfigurationFault } from './attempt-end.ts'
import { AttemptRun } from './attempt.ts'
import {
  CallerRequestWriter,
  writeFor,
  type BackendRequestDeps,
  type RequestWriter,
  type BackendRequestBody,
} from './backend-request.ts'
import type { ProviderErrors } from './provider-errors.ts'
import { isTransientFailure, secondAttempt, type SecondAttempt } from './second-attempt.ts'

export interface FailoverDeps extends BackendRequestDeps {
  readonly clock: Clock
  readonly breakers: CircuitBreakers
  readonly budget: RetryBudget
  readonly log: EventLog
  /** Stores error messages of failing backends; undefined if nobody would read them. */
  readonly providerErrors?: ProviderErrors | undefined
}

interface FailoverOptions {
  readonly request: AllowedRequest
  readonly accountId: string
  readonly conversation: Conversation
  readonly backends: readonly Backend[]
  readonly written: BackendRequestBody | undefined
}

/** Tries the backends of one request until one of them starts to answer (contract 7). */
export class Failover implements AnswerSource {
  /** The outcome of every attempt so far, in order. */
  readonly attempts: Attempt[] = []
  /** The current attempt, waiting or answering. */
  current: AttemptRun<Backend> | undefined
  /** The backend that answers; undefined before the first content. */
  origin: Backend | undefined
  readonly #deps: FailoverDeps
  readonly #request: AllowedRequest
  readonly #conversation: Conversation
  readonly #backends: readonly Backend[]
  readonly #caller: BreakerKey
  readonly #candidates: Candidates
  /** Backends that were skipped when the backend was chosen, in order; undefined if none were (contract 7.19). */
  #skippedBackends: readonly SkippedBackend[] | undefined
  readonly #writer: RequestWriter
  /** Creates the lane of an attempt; the request run changes how once it has opened the stream itself. */
  readonly #laneFor: (backend: Backend) => Lane
  /** Released once it is sent, because it may be large. */
  #written: BackendRequestBody | undefined
  /** The backend whose retry budget the current attempt uses. */
  #budgetOf: Backend | undefined
  /** Number of backends tried; the last one may be answering. */
  #asked = 0
  /** A capability that the tried backends lack, if that is the only reason they failed. */
  #lacking: Need | undefined
  /** Whether a backend failed in a way that does not show whether it would have accepted the request. */
  #isUncommitted = false

  constructor(
    deps: FailoverDeps,
    { request, accountId, conversation, backends, written }: FailoverOptions,
    laneFor: (backend: Backend) => Lane,
  ) {
    this.#deps = deps
    this.#written = written
    this.#request = request
    this.#conversation = conversation
    this.#backends = backends
    let kind: ContentKind | undefined
    this.#caller = { accountId, contentKind: () => (kind ??= contentKindOf(conversation)) }
    this.#candidates = new Candidates(backends, deps.breakers, this.#caller)
    this.#writer = new CallerRequestWriter(request, conversation, deps)
    this.#laneFor = laneFor
  }

  /** How many backends failed before the current one. */
  get retryCount(): number {
    return Math.max(0, this.#asked - 1)
  }

  /** The skipped backends. */
  get recordMembers(): Pick<RequestOutcome, 'passedBy'> {
    return this.#skippedBackends === undefined ? {} : { passedBy: this.#skippedBackends }
  }

  /**
   * The attempt of the first backend that returns content.
   * @throws ServiceError if none does, and the error passed to `stop`
   */
  async firstContent(): Promise<AttemptRun<Backend>> {
    let lastError: ServiceError | undefined
    for (;;) {
      const backend = this.#nextBackend()
      if (backend === undefined) {
        this.#noteSkippedBackends(this.#backends)
        throw lastError ?? this.#exhausted()
      }
      let written: BackendRequestBody
      try {
        written = this.#bodyFor(backend)
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        this.release()
        // Another backend's format may express the request (contract 11.4): even that of one that failed before.
        if (!this.#isUncommitted) lastError = error
        continue
      }
      this.#asked += 1
      const answered = await this.#ask(backend, written)
      if (answered instanceof AttemptRun) {
        const index = this.#backends.indexOf(backend)
        if (index > 0) this.#noteSkippedBackends(this.#backends.slice(0, index))
        this.origin = answered.target
        return answered
      }
      lastError = answered
    }
  }

  /**
   * Releases what was taken from the retry budget. Called when the first content arrives, or when nothing more is
   * tried.
   */
  release(): void {
    if (this.#budgetOf !== undefined) this.#deps.budget.release(this.#caller.accountId, this.#budgetOf.id)
    this.#budgetOf = undefined
  }

  /** Nothing runs except the current attempt. */
  end(): void {}

  #noteSkippedBackends(backends: readonly Backend[]): void {
    const { skipped } = this.#candidates.exhausted(backends)
    const unasked = skipped.filter(({ backend }) => !this.attempts.some((attempt) => attempt.backend === backend))
    if (unasked.length > 0) this.#skippedBackends = unasked
  }

  /** Whether a silent backend may be abandoned for another: not while it reasons because the caller asked for it. */
  readonly #mayLeave = (sawHeaders: boolean): boolean => {
    if (sawHeaders && this.#conversation.reasoning !== undefined) return false
    return this.#asked < maxAttempts && this.#candidates.hasUsable
  }

  /** The next backend to try, with its retry budget taken if it needs one. */
  #nextBackend(): Backend | undefined {
    if (this.#asked >= maxAttempts) return undefined
    return this.attempts.length === 0
      ? this.#candidates.next()
      : this.#candidates.next((backend) => this.#mayRetry(backend))
  }

  /** A retry to a healthy backend does not multiply load; any other retry needs budget (contract 7.8). */
  #mayRetry(backend: Backend): boolean {
    const { breakers, budget } = this.#deps
    if (!breakers.isTroubled(backend.id)) return true
    if (!budget.take(this.#caller.accountId, backend.id)) return false
    this.#budgetOf = backend
    return true
  }

  /**
   * Calls one backend, and retries it if its rejection says how. Returns the error to answer with if no backend is
   * left.
   */
  async #ask(backend: Backend, first: BackendRequestBody): Promise<AttemptRun<Backend> | ServiceError | undefined> {
    let written = first
    let again: SecondAttempt | undefined
    let isRepeated = false
    for (;;) {
      const { backend: endpoint, body } = written
      const run = this.#start(endpoint)
      const trace = this.#request.trace?.attempt(endpoint)
      try {
        const { stream } = this.#conversation
        const headers = headersFor(endpoint, this.#request, trace?.traceparent)
        await run.open({ body, stream, requestId: this.#request.id, headers }, this.#request.grant, this.#mayLeave)
      } catch (error) {
        this.#end(run, trace, error)
        const { learned } = this.#deps
        const sentLength = body.length
        const next = secondAttempt(error, {
          backend,
          endpoint,
          sentLength,
          writer: this.#writer,
          learned,
          earlier: again,
        })
        if (next !== undefined) {
          again = next
          written = again.written
          continue
        }
        if (!isRepeated && this.#isTransientFailure(run, error)) {
          isRepeated = true
          continue
        }
        return this.#errorAfter(backend, error)
      }
      again?.learn()
      this.#end(run, trace)
      return run
    }
  }

  #isTransientFailure({ target, startedMs }: AttemptRun, error: unknown): boolean {
    const { clock, breakers } = this.#deps
    return isTransientFailure(error, clock.monotonicMs() - startedMs, breakers.failuresInARow(target.id, this.#caller))
  }

  #start(backend: Backend): AttemptRun<Backend> {
    const { clock, breakers } = this.#deps
    const lane = this.#laneFor(backend)
    const run = new AttemptRun(
      backend,
      lane,
      this.#conversation.stream,
      clock,
      breakers.begin(backend.id, this.#caller),
    )
    this.current = run
    return run
  }

  /**
   * The error to answer with if no backend is left after this failure (contract 7.3, 7.13). @throws errors that end the
   * request at once
   */
  #errorAfter(backend: Backend, error: unknown): ServiceError | undefined {
    if (!(error instanceof UpstreamError) || error.outcome === 'cancelled') throw error
    const { outcome, rejection } = error
    if (outcome === 'context_too_long') return this.#tooLong(backend, rejection?.windowTokens)
    const needs = outcome === 'not_capable' ? needsOf(this.#conversation) : []
    const lacking = rejection?.lacks?.find((need) => needs.includes(need))
    if (lacking !== undefined) {
      this.#deps.learned.learnLack(backend, lacking)
      this.#lacking ??= lacking
      return undefined
    }
    if (outcome === 'rejected_content' || outcome === 'not_capable') {
      const rejected = contentRejected(error, backend, this.#request, this.retryCount)
      // Engines support different schemas: another backend may enforce this one.
      if (rejection?.rule === 'schema_invalid') return rejected
      throw rejected
    }
    this.#candidates.failed(backend)
    this.#isUncommitted = true
    return undefined
  }

  #tooLong(backend: Backend, toldTokens: number | undefined): ServiceError {
    const { learned } = this.#deps
    if (toldTokens !== undefined && backend.contextWindow === undefined) learned.learnWindow(backend, toldTokens)
    this.#candidates.keepLargerThan(backend.contextWindow ?? toldTokens)
    return new ServiceError('context_length_exceeded', {
      upstream: backend.id,
      retryCount: this.retryCount,
      words: { profile: this.#conversation.profile },
    })
  }

  #bodyFor(backend: Backend): BackendRequestBody {
    const written = this.#written
    this.#written = undefined
    if (written?.backend.id === backend.id) return written
    return writeFor(backend, this.#writer)
  }

  #end(run: AttemptRun, trace: AttemptTrace | undefined, error?: unknown): void {
    run.reportError(this.#deps.providerErrors, this.#request.id)
    this.release()
    const record = attemptRecord(run, this.#deps.clock.monotonicMs(), error)
    this.attempts.push(record)
    trace?.ended(record, error === undefined)
    logConfigurationFault(this.#deps.log, { backend: run.target.id, requestId: this.#request.id }, error)
  }

  #exhausted(): ServiceError {
    const { profile } = this.#conversation
    const { soonestMs, skipped } = this.#candidates.exhausted(this.#backends)
    const retryCount = this.retryCount
    const tried = this.attempts.map(({ outcome }) => outcome)
    const unasked = this.#skippedBackends ?? []
    if (unasked.length === 0 && !this.#candidates.hasUsable) {
      if (this.#lacking !== undefined && !this.#isUncommitted)
        return notCapable(this.#lacking, profile, this.#deps.formats(this.#request.format).inputField)
      if (tried.length > 0 && tried.every((outcome) => outcome === 'not_found'))
        return new ServiceError('upstream_misconfigured', { retryCount })
    }
    if (tried.length > 0 && tried.every((outcome) => outcome === 'not_sent'))
      return new ServiceError('server_busy', { retryCount, retryAfterSeconds: 1 })
    const rejected = [
      ...tried.map((outcome) => outcome === 'rejected_credentials'),
      ...skipped.map(({ reason }) => reason === 'credentials'),
    ]
    if (rejected.length > 0 && rejected.every(Boolean))
      return new ServiceError('upstream_credentials_rejected', { retryCount })
    const waitMs = soonestMs === undefined ? 0 : soonestMs - this.#deps.clock.nowMs()
    const seconds = Math.min(60, Math.max(1, Math.ceil(waitMs / 1000)))
    return new ServiceError('server_is_overloaded', {
      retryCount,
      retryAfterSeconds: seconds,
      attempts: this.attempts.map(({ backend, outcome }) => ({ backend, outcome })),
      passedBy: unasked,
      words: { profile, seconds },
    })
  }
}

/** The request headers for one backend: the caller's, which say how to read the body, and those that we add. */
function headersFor(
  backend: Backend,
  { format, passedHeaders, addedHeaders }: AllowedRequest,
  traceparent: string | undefined,
): readonly string[] | undefined {
  const passed = backend.format === format ? passedHeaders : undefined
  if (addedHeaders === undefined && traceparent === undefined) return passed
  const headers = [...(passed ?? []), ...(addedHeaders ?? [])]
  if (traceparent !== undefined) headers.push(traceHeader, traceparent)
  return headers
}
