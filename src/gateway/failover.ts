import type { PassedBy } from '../domain/backend-condition.ts'
import type { Clock } from '../domain/clock.ts'
import type { Conversation } from '../domain/conversation.ts'
import { ServiceError } from '../domain/errors.ts'
import type { EventLog } from '../domain/events.ts'
import { fusionDepthHeader } from '../domain/profiles.ts'
import { UpstreamError, type Attempt, type Need } from '../domain/upstream.ts'
import { AttemptRun } from './attempt.ts'
import { attemptOf, logConfigurationFault } from './attempt-end.ts'
import { requestWriter, writeFor, type BodyParts, type RequestWriter, type WrittenBody } from './backend-body.ts'
import type { Lane } from './lane.ts'
import type { Backend, AllowedRequest } from './ports.ts'
import type { ProviderErrors } from './provider-errors.ts'
import { contentRejected, notCapable } from './refusal-errors.ts'
import { Candidates, maxAttempts } from './routing/candidates.ts'
import type { Asker } from './routing/backend-breakers.ts'
import { needsOf } from './routing/capable-backends.ts'
import type { CircuitBreakers } from './routing/circuit-breakers.ts'
import { contentKindOf, type ContentKind } from './routing/content-kind.ts'
import type { RetryBudget } from './routing/retry-budget.ts'
import { isHiccup, secondTry, type SecondTry } from './second-try.ts'

export interface FailoverParts extends BodyParts {
  readonly clock: Clock
  readonly breakers: CircuitBreakers
  readonly budget: RetryBudget
  readonly log: EventLog
  /** Stores error messages of failing backends; undefined if nobody would read them. */
  readonly providerErrors?: ProviderErrors | undefined
}

interface FailoverOf {
  readonly request: AllowedRequest
  readonly accountId: string
  readonly conversation: Conversation
  readonly backends: readonly Backend[]
  readonly written: WrittenBody | undefined
}

/** Tries the backends of one request until one of them starts to answer (contract 7). */
export class Failover {
  /** The outcome of every attempt so far, in order. */
  readonly attempts: Attempt[] = []
  /** Backends that were skipped when the backend was chosen, in order; undefined if none were. */
  passedBy: readonly PassedBy[] | undefined
  /** The current attempt, waiting or answering. */
  current: AttemptRun | undefined
  readonly #parts: FailoverParts
  readonly #request: AllowedRequest
  readonly #conversation: Conversation
  readonly #backends: readonly Backend[]
  readonly #asker: Asker
  readonly #candidates: Candidates
  readonly #writer: RequestWriter
  /** Creates the lane of an attempt; the request run changes how once it has opened the stream itself. */
  readonly #laneFor: (backend: Backend) => Lane
  /** Released once it is sent, because it may be large. */
  #written: WrittenBody | undefined
  /** The backend whose retry budget the current attempt uses. */
  #budgetOf: Backend | undefined
  /** Number of backends tried; the last one may be answering. */
  #asked = 0
  /** A capability that the tried backends lack, if that is the only reason they failed. */
  #lacking: Need | undefined
  /** Whether a backend failed in a way that does not show whether it would have accepted the request. */
  #isUndecided = false

  constructor(
    parts: FailoverParts,
    { request, accountId, conversation, backends, written }: FailoverOf,
    laneFor: (backend: Backend) => Lane,
  ) {
    this.#parts = parts
    this.#written = written
    this.#request = request
    this.#conversation = conversation
    this.#backends = backends
    let kind: ContentKind | undefined
    this.#asker = { accountId, contentKind: () => (kind ??= contentKindOf(conversation)) }
    this.#candidates = new Candidates(backends, parts.breakers, this.#asker)
    this.#writer = requestWriter(request, conversation, parts)
    this.#laneFor = laneFor
  }

  /** How many backends failed before the current one. */
  get retryCount(): number {
    return Math.max(0, this.#asked - 1)
  }

  /**
   * The attempt of the first backend that returns content.
   * @throws ServiceError if none does, and the error passed to `stop`
   */
  async firstContent(): Promise<AttemptRun> {
    let refusal: ServiceError | undefined
    for (;;) {
      const backend = this.#nextBackend()
      if (backend === undefined) {
        this.#notePassedBy(this.#backends)
        throw refusal ?? this.#exhausted()
      }
      let written: WrittenBody
      try {
        written = this.#bodyFor(backend)
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        // This backend's formats cannot express the request; another backend's may.
        this.release()
        refusal = error
        continue
      }
      this.#asked += 1
      const answered = await this.#ask(backend, written)
      if (answered instanceof AttemptRun) {
        const place = this.#backends.indexOf(backend)
        if (place > 0) this.#notePassedBy(this.#backends.slice(0, place))
        return answered
      }
      refusal = answered
    }
  }

  /**
   * Releases what was taken from the retry budget. Called when the first content arrives, or when nothing more is
   * tried.
   */
  release(): void {
    if (this.#budgetOf !== undefined) this.#parts.budget.giveBack(this.#asker.accountId, this.#budgetOf.id)
    this.#budgetOf = undefined
  }

  #notePassedBy(backends: readonly Backend[]): void {
    const { passedBy } = this.#candidates.exhausted(backends)
    const unasked = passedBy.filter(({ backend }) => !this.attempts.some((attempt) => attempt.backend === backend))
    if (unasked.length > 0) this.passedBy = unasked
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
    const { breakers, budget } = this.#parts
    if (!breakers.isTroubled(backend.id)) return true
    if (!budget.take(this.#asker.accountId, backend.id)) return false
    this.#budgetOf = backend
    return true
  }

  /**
   * Calls one backend, and retries it if its rejection says how. Returns the error to answer with if no backend is
   * left.
   */
  async #ask(backend: Backend, first: WrittenBody): Promise<AttemptRun | ServiceError | undefined> {
    let written = first
    let again: SecondTry | undefined
    let isRepeated = false
    for (;;) {
      const { backend: endpoint, body } = written
      const run = this.#start(endpoint)
      try {
        const { stream } = this.#conversation
        const headers = headersFor(endpoint, this.#request)
        await run.open({ body, stream, requestId: this.#request.id, headers }, this.#request.grant, this.#mayLeave)
      } catch (error) {
        this.#end(run, error)
        const { learned } = this.#parts
        const sentLength = body.length
        const next = secondTry(error, { backend, endpoint, sentLength, writer: this.#writer, learned, earlier: again })
        if (next !== undefined) {
          again = next
          written = again.written
          continue
        }
        if (!isRepeated && this.#isHiccup(run, error)) {
          isRepeated = true
          continue
        }
        return this.#refusalAfter(backend, error)
      }
      again?.learn()
      this.#end(run)
      return run
    }
  }

  #isHiccup({ backend, startedMs }: AttemptRun, error: unknown): boolean {
    const { clock, breakers } = this.#parts
    return isHiccup(error, clock.monotonicMs() - startedMs, breakers.failuresInARow(backend.id, this.#asker))
  }

  #start(backend: Backend): AttemptRun {
    const { clock, breakers } = this.#parts
    const lane = this.#laneFor(backend)
    const run = new AttemptRun(backend, lane, this.#conversation.stream, clock, breakers.begin(backend.id, this.#asker))
    this.current = run
    return run
  }

  /** The error to answer with if no backend is left after this failure. @throws errors that end the request at once */
  #refusalAfter(backend: Backend, error: unknown): ServiceError | undefined {
    if (!(error instanceof UpstreamError) || error.outcome === 'cancelled') throw error
    const { outcome, refusal } = error
    if (outcome === 'context_too_long') return this.#tooLong(backend, refusal?.windowTokens)
    const needs = outcome === 'not_capable' ? needsOf(this.#conversation) : []
    const lacking = refusal?.lacks?.find((need) => needs.includes(need))
    if (lacking !== undefined) {
      this.#parts.learned.learnLack(backend, lacking)
      this.#lacking ??= lacking
      return undefined
    }
    if (outcome === 'rejected_content' || outcome === 'not_capable') {
      const rejected = contentRejected(error, backend, this.#request, this.retryCount)
      // Engines support different schemas: another backend may enforce this one.
      if (refusal?.rule === 'schema_invalid') return rejected
      throw rejected
    }
    this.#candidates.failed(backend)
    this.#isUndecided = true
    return undefined
  }

  #tooLong(backend: Backend, toldTokens: number | undefined): ServiceError {
    const { learned } = this.#parts
    if (toldTokens !== undefined && backend.contextWindow === undefined) learned.learnWindow(backend, toldTokens)
    this.#candidates.keepLargerThan(backend.contextWindow ?? toldTokens)
    return new ServiceError('context_length_exceeded', {
      upstream: backend.id,
      retryCount: this.retryCount,
      words: { profile: this.#conversation.profile },
    })
  }

  #bodyFor(backend: Backend): WrittenBody {
    const written = this.#written
    this.#written = undefined
    if (written?.backend.id === backend.id) return written
    return writeFor(backend, this.#writer)
  }

  #end(run: AttemptRun, error?: unknown): void {
    run.tellError(this.#parts.providerErrors, this.#request.id)
    this.release()
    this.attempts.push(attemptOf(run, this.#parts.clock.monotonicMs(), error))
    logConfigurationFault(this.#parts.log, { backend: run.backend.id, requestId: this.#request.id }, error)
  }

  #exhausted(): ServiceError {
    const { profile } = this.#conversation
    const { soonestMs, passedBy } = this.#candidates.exhausted(this.#backends)
    const retryCount = this.retryCount
    const tried = this.attempts.map(({ outcome }) => outcome)
    const unasked = this.passedBy ?? []
    if (unasked.length === 0 && !this.#candidates.hasUsable) {
      if (this.#lacking !== undefined && !this.#isUndecided)
        return notCapable(this.#lacking, profile, this.#request.format)
      if (tried.length > 0 && tried.every((outcome) => outcome === 'not_found'))
        return new ServiceError('upstream_misconfigured', { retryCount })
    }
    if (tried.length > 0 && tried.every((outcome) => outcome === 'not_sent'))
      return new ServiceError('server_busy', { retryCount, retryAfterSeconds: 1 })
    const rejected = [
      ...tried.map((outcome) => outcome === 'rejected_credentials'),
      ...passedBy.map(({ reason }) => reason === 'credentials'),
    ]
    if (rejected.length > 0 && rejected.every(Boolean))
      return new ServiceError('upstream_credentials_rejected', { retryCount })
    const waitMs = soonestMs === undefined ? 0 : soonestMs - this.#parts.clock.nowMs()
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

/**
 * The request headers for one backend: how to read the body, and the fusion depth, so that a nested router starts no
 * further fusion.
 */
function headersFor(
  backend: Backend,
  { format, passedHeaders, fusionDepth }: AllowedRequest,
): readonly string[] | undefined {
  const passed = backend.format === format ? passedHeaders : undefined
  return fusionDepth === undefined ? passed : [...(passed ?? []), fusionDepthHeader, String(fusionDepth)]
}
