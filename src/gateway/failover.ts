import type { Clock } from '../domain/clock.ts'
import type { Conversation } from '../domain/conversation.ts'
import { ServiceError } from '../domain/errors.ts'
import type { EventLog } from '../domain/events.ts'
import { fusionDepthHeader } from '../domain/profiles.ts'
import { UpstreamError, type Attempt } from '../domain/upstream.ts'
import { AttemptRun } from './attempt.ts'
import { attemptOf, logRejectedCredentials } from './attempt-end.ts'
import { writeBody, type BodyParts, type WrittenBody } from './backend-body.ts'
import type { Lane } from './lane.ts'
import type { Backend, ModelRequest } from './ports.ts'
import type { ProviderErrors } from './provider-errors.ts'
import { Candidates, maxAttempts } from './routing/candidates.ts'
import type { Asker } from './routing/backend-breakers.ts'
import type { CircuitBreakers } from './routing/circuit-breakers.ts'
import { contentKindOf, type ContentKind } from './routing/content-kind.ts'
import type { RetryBudget } from './routing/retry-budget.ts'

export interface FailoverParts extends BodyParts {
  readonly clock: Clock
  readonly breakers: CircuitBreakers
  readonly budget: RetryBudget
  readonly log: EventLog
  /** Keeps what failing backends said; undefined where nobody would read it. */
  readonly providerErrors?: ProviderErrors | undefined
}

interface FailoverOf {
  readonly request: ModelRequest
  readonly accountId: string
  readonly conversation: Conversation
  readonly backends: readonly Backend[]
  readonly written: WrittenBody | undefined
}

/** One request's way through its backends until one of them begins to answer (contract 5). */
export class Failover {
  /** What became of every attempt so far, in order. */
  readonly attempts: Attempt[] = []
  /** The attempt that is being waited for or has answered. */
  current: AttemptRun | undefined
  readonly #parts: FailoverParts
  readonly #request: ModelRequest
  readonly #conversation: Conversation
  readonly #backends: readonly Backend[]
  readonly #asker: Asker
  readonly #candidates: Candidates
  /** Makes the lane of an attempt; the course changes how once it had to open the stream itself. */
  readonly #laneFor: (backend: Backend) => Lane
  /** Kept only until it is sent: it may be large. */
  #written: WrittenBody | undefined
  /** The backend whose retry budget the attempt under way has taken from. */
  #budgetOf: Backend | undefined
  /** Attempts that were begun; the last of them may be under way. */
  #started = 0

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
    this.#laneFor = laneFor
  }

  /** How many backends failed before the current one. */
  get retryCount(): number {
    return Math.max(0, this.#started - 1)
  }

  /** The attempt of the first backend that has content. @throws ServiceError when none has, and whatever `stop` was told */
  async firstContent(): Promise<AttemptRun> {
    let refusal: ServiceError | undefined
    for (;;) {
      const backend = this.#nextBackend()
      if (backend === undefined) throw refusal ?? this.#exhausted()
      let body: Uint8Array | string
      try {
        body = this.#bodyFor(backend)
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        // This backend's format cannot say what was asked; another one's may.
        this.release()
        refusal = error
        continue
      }
      const run = this.#start(backend)
      try {
        const { stream } = this.#conversation
        const headers = headersFor(backend, this.#request)
        await run.open({ body, stream, requestId: this.#request.id, headers }, this.#mayLeave)
      } catch (error) {
        this.#end(run, error)
        refusal = this.#refusalAfter(backend, error)
        continue
      }
      this.#end(run)
      return run
    }
  }

  /** Gives back what was taken. Called once the first content is there or nothing more is tried. */
  release(): void {
    if (this.#budgetOf !== undefined) this.#parts.budget.giveBack(this.#asker.accountId, this.#budgetOf.id)
    this.#budgetOf = undefined
  }

  /** Whether a backend that stays silent can be left for another. */
  readonly #mayLeave = (): boolean => this.#started < maxAttempts && this.#candidates.hasUsable

  /** The next backend, for which a budget is taken if it needs one. */
  #nextBackend(): Backend | undefined {
    if (this.attempts.length >= maxAttempts) return undefined
    return this.attempts.length === 0
      ? this.#candidates.next()
      : this.#candidates.next((backend) => this.#mayRetry(backend))
  }

  /** A retry that goes to a healthy backend multiplies nothing; any other needs a budget (contract 5.2). */
  #mayRetry(backend: Backend): boolean {
    const { breakers, budget } = this.#parts
    if (!breakers.isTroubled(backend.id)) return true
    if (!budget.take(this.#asker.accountId, backend.id)) return false
    this.#budgetOf = backend
    return true
  }

  #start(backend: Backend): AttemptRun {
    const { clock, breakers } = this.#parts
    const lane = this.#laneFor(backend)
    const run = new AttemptRun(backend, lane, this.#conversation.stream, clock, breakers.begin(backend.id, this.#asker))
    this.current = run
    this.#started += 1
    return run
  }

  /** What to answer where no further backend is left behind one that failed. @throws what ends the request at once */
  #refusalAfter(backend: Backend, error: unknown): ServiceError | undefined {
    if (!(error instanceof UpstreamError) || error.outcome === 'cancelled') throw error
    if (error.outcome === 'rejected_content') throw this.#contentRejected(backend, error)
    if (error.outcome === 'context_too_long') {
      this.#candidates.keepLargerThan(backend)
      return new ServiceError('context_length_exceeded', {
        upstream: backend.id,
        retryCount: this.retryCount,
        words: { profile: this.#conversation.profile },
      })
    }
    this.#candidates.failed(backend)
    return undefined
  }

  #bodyFor(backend: Backend): Uint8Array | string {
    const written = this.#written
    this.#written = undefined
    if (written?.backend === backend) return written.body
    return writeBody(backend, this.#request, this.#conversation, this.#parts)
  }

  #end(run: AttemptRun, error?: unknown): void {
    run.tellError(this.#parts.providerErrors, this.#request.id)
    this.release()
    this.attempts.push(attemptOf(run, this.#parts.clock.monotonicMs(), error))
    logRejectedCredentials(this.#parts.log, { backend: run.backend.id, requestId: this.#request.id }, error)
  }

  #contentRejected(backend: Backend, error: UpstreamError): ServiceError {
    const { status, param } = error
    // Only a field that the caller itself sent is named: nothing of the upstream's own text gets through.
    const known = param !== undefined && Object.hasOwn(this.#request.body, param.split(/[.[]/)[0] ?? '')
    return new ServiceError('content_rejected', {
      upstream: backend.id,
      retryCount: this.retryCount,
      ...(status === undefined ? {} : { status }),
      ...(known ? { param } : {}),
    })
  }

  #exhausted(): ServiceError {
    const { profile } = this.#conversation
    const { soonestMs, passedBy } = this.#candidates.exhausted(this.#backends)
    const retryCount = this.retryCount
    const tried = this.attempts.map(({ outcome }) => outcome)
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
      passedBy: passedBy.filter(({ backend }) => !this.attempts.some((tried) => tried.backend === backend)),
      words: { profile, seconds },
    })
  }
}

/** What goes with the body: what says how to read it, and how many fusions it is part of, so that no further one begins. */
function headersFor(
  backend: Backend,
  { format, passedHeaders, fusionDepth }: ModelRequest,
): readonly string[] | undefined {
  const passed = backend.format === format ? passedHeaders : undefined
  return fusionDepth === undefined ? passed : [...(passed ?? []), fusionDepthHeader, String(fusionDepth)]
}
