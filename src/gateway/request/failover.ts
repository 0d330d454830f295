import type { SkippedBackend } from '../../domain/backend-state.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { RequestOutcome } from '../../domain/requests.ts'
import { routingField } from '../../domain/routing-policy.ts'
import { UpstreamError, type Attempt } from '../../domain/upstream.ts'
import { asError } from '../../runtime/describe-bug.ts'
import type { Turn } from '../../runtime/fair-queue.ts'
import { isCacheable } from '../cache/cache-lifetime.ts'
import type { Lane } from '../lanes/lane.ts'
import type { AttemptTrace, Backend } from '../ports.ts'
import type { BreakerKey } from '../routing/backend-breakers.ts'
import { beginAttempt } from '../routing/begin-attempt.ts'
import { Candidates, maxAttempts } from '../routing/candidates.ts'
import { contentKindOf, type ContentKind } from '../routing/content-kind.ts'
import { hedgingFor, type Hedging } from '../routing/hedging.ts'
import { candidatesOptions } from '../routing/open-candidates.ts'
import { promptKindOf, type PromptKind } from '../routing/prompt-kind.ts'
import { notCapable } from '../routing/rejection-errors.ts'
import type { AnswerSource } from './answer-source.ts'
import { attemptRecord, logConfigurationFault, recordLast } from './attempt-end.ts'
import { AttemptFailures } from './attempt-failures.ts'
import { headersFor } from './attempt-headers.ts'
import { AttemptRun } from './attempt.ts'
import { CallerRequestWriter, writeFor, type RequestWriter, type BackendRequestBody } from './backend-request.ts'
import { exhaustedError, sentRetryCount } from './exhausted-error.ts'
import type { FailoverDeps, FailoverOptions } from './failover-deps.ts'
import { firstSettled, isPendingAfter } from './first-settled.ts'
import { RequestRetries } from './request-retries.ts'
import { RoomWait } from './room-wait.ts'
import { isTransientFailure, secondAttempt, type SecondAttempt } from './second-attempt.ts'
import { ShortWait } from './short-wait.ts'
import { warmWaitFor, WaitingRun, type WarmWait } from './warm-wait.ts'

/** An attempt that answers, or the error to answer with if no backend is left. */
type Asked = AttemptRun<Backend> | ServiceError | undefined

/** Tries the backends of one request until one of them starts to answer (contract 7). */
export class Failover implements AnswerSource {
  /** The outcome of every attempt so far, in order. */
  readonly attempts: Attempt[] = []
  /** The current attempt, waiting or answering. */
  current: AttemptRun<Backend> | undefined
  /** The backend that answers; undefined before the first content. */
  origin: Backend | undefined
  /** The trace of the attempt that answers. */
  trace: AttemptTrace | undefined
  /** Whether no backend was left. */
  isExhausted = false
  readonly #deps: FailoverDeps
  readonly #options: FailoverOptions
  readonly #caller: BreakerKey
  readonly #candidates: Candidates
  readonly #kind: PromptKind
  /** Backends that were skipped when the backend was chosen, in order; undefined if none were (contract 7.19). */
  #skippedBackends: readonly SkippedBackend[] | undefined
  readonly #writer: RequestWriter
  /** Creates the lane of an attempt; the request run changes how once it has opened the stream itself. */
  readonly #laneFor: (backend: Backend) => Lane
  /** Released once it is sent, because it may be large. */
  #written: BackendRequestBody | undefined
  /** Created for the first retry. */
  #retriesIfAny: RequestRetries | undefined
  /** Number of backends tried; the last one may be answering. */
  #asked = 0
  /** A second call that runs beside the current attempt. */
  #hedge: { readonly backend: Backend; run?: AttemptRun<Backend> } | undefined
  /** The backend of the second call, also after it has ended. */
  #hedgeBackend: string | undefined
  /** What the record of the first attempt says of the request (contract 28.6). */
  #aboutRequest: Pick<Attempt, 'kind' | 'ownRouting'> | undefined
  /** The faster one of two attempts, once it is known. */
  #faster: AttemptRun<Backend> | undefined
  readonly #hedging: Hedging | undefined
  readonly #warmWait: WarmWait | undefined
  readonly #shortWait: ShortWait
  readonly #roomWait: RoomWait
  /** Whether the last body that was answered can be cached where it was sent. */
  #isCacheable = true
  /** Backends that were asked beside the current one and have not failed. */
  #unfailed = 0
  readonly #failures: AttemptFailures

  constructor(deps: FailoverDeps, options: FailoverOptions, laneFor: (backend: Backend) => Lane) {
    const { request, accountId, conversation } = options
    this.#deps = deps
    this.#written = options.written
    this.#options = options
    let kind: ContentKind | undefined
    this.#caller = { accountId, contentKind: () => (kind ??= contentKindOf(conversation)) }
    this.#kind = promptKindOf(request.bytes.length, conversation)
    const hasOwnRouting = request.body[routingField] !== undefined
    this.#aboutRequest = { kind: this.#kind, ...(hasOwnRouting ? { ownRouting: true } : {}) }
    this.#candidates = new Candidates(candidatesOptions(deps, options, this.#caller))
    this.#failures = new AttemptFailures(deps.learned.of(accountId), options, this.#candidates)
    this.#hedging = hedgingFor(deps, options, this.#caller, this.#kind)
    this.#warmWait = warmWaitFor(deps, options, this.#caller, this.#kind)
    this.#shortWait = new ShortWait(deps, options, this.#caller, this.#kind)
    this.#roomWait = new RoomWait(deps, options, this.#candidates)
    const { formats, relays } = deps
    this.#writer = new CallerRequestWriter(request, conversation, { formats, relays, learned: this.#failures.learned })
    this.#laneFor = laneFor
  }

  /** How many backends failed before the current one. */
  get retryCount(): number {
    return Math.max(0, this.#asked - 1 - this.#unfailed)
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
      let backend = this.#nextBackend()
      if (this.#warmWait !== undefined || this.attempts.length > 0) backend = await this.#orWaited(backend)
      if (backend === undefined) {
        this.#noteSkippedBackends()
        this.isExhausted = true
        throw lastError ?? (await this.#options.request.spending?.refusal(this.attempts)) ?? this.#exhausted()
      }
      const turn = this.#roomWait.begin(backend)
      if (turn !== undefined) await this.#waitForRoom(backend, turn)
      let written: BackendRequestBody
      try {
        written = this.#bodyFor(backend)
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        this.#retriesIfAny?.refund()
        // Another backend's format may express the request (contract 11.4): even that of one that failed before.
        if (!this.#failures.isUncommitted) lastError = error
        continue
      }
      if (!this.attempts.some((attempt) => attempt.backend === written.backend.id)) this.#asked += 1
      const answered = await this.#askFirst(backend, written)
      if (answered instanceof AttemptRun) {
        this.#options.session?.answeredBy(answered, this.#options.backends, this.#isCacheable)
        const earlier = this.#candidates.comingBefore(backend)
        if (earlier.length > 0) this.#noteSkippedBackends(earlier)
        this.origin = answered.target
        return answered
      }
      lastError = answered
    }
  }

  /** Lets `firstContent` ask the next backend, because the answer of the current one broke off (contract 40.2). */
  leaveOrigin(): void {
    this.#candidates.failed(this.origin!)
    this.#faster = undefined
  }

  /** Nothing runs except the current attempt. */
  end(): void {}

  /** Aborts the second call, if there is one: from now on only one attempt may write. */
  keepOne(): void {
    const run = this.#hedge?.run
    this.#hedge = undefined
    this.#unfailed = 0
    run?.stop(new UpstreamError('cancelled'))
  }

  #noteSkippedBackends(backends?: readonly Backend[]): void {
    const { skipped } = this.#candidates.exhausted(backends)
    const unasked = skipped.filter(({ backend }) => !this.attempts.some((attempt) => attempt.backend === backend))
    if (unasked.length > 0) this.#skippedBackends = unasked
  }

  /** Whether a silent backend may be abandoned for another: not while it reasons because the caller asked for it. */
  readonly #mayLeave = (sawHeaders: boolean): boolean => {
    if (sawHeaders && this.#options.conversation.reasoning !== undefined) return false
    return this.#asked < maxAttempts && this.#candidates.preferred.some((backend) => this.#retries.has(backend))
  }

  /** The next backend to try, with its retry budget taken if it needs one. */
  #nextBackend(): Backend | undefined {
    if (this.#asked >= maxAttempts) return undefined
    return this.attempts.length === 0
      ? this.#candidates.next()
      : this.#candidates.next((backend) => this.#retries.take(backend))
  }

  /** The backend to ask: `next`, or after a wait one that failed before (contract 7.33, 45.6). */
  async #orWaited(next: Backend | undefined): Promise<Backend | undefined> {
    const { current } = this
    let waiting: WaitingRun | undefined
    const pause = (ms: number): Promise<void> => {
      waiting ??= this.#waitingRun(next ?? current!.target)
      return waiting.wait(ms, this.#deps.clock)
    }
    try {
      const warm = next && (await this.#warmWait?.insteadOf(next, pause))
      const found = warm ?? (await this.#shortWait.insteadOf(next, this.attempts, pause))
      if (found === undefined || (found !== warm && !this.#retries.takeInstead(found))) return next
      if (found === warm) this.#retriesIfAny?.refund()
      if (next !== undefined) this.#candidates.askInstead(found, next)
      return found
    } catch (error) {
      this.#retriesIfAny?.refund()
      throw error
    } finally {
      this.current = current
    }
  }

  /** Waits for its turn at a backend that has as many open calls as it is known to accept (contract 7.35). */
  async #waitForRoom(backend: Backend, turn: Turn): Promise<void> {
    const { current } = this
    try {
      await this.#waitingRun(backend).until(turn.came)
    } catch (error) {
      this.#retriesIfAny?.refund()
      throw error
    } finally {
      turn.leave()
      this.current = current
    }
  }

  #waitingRun(target: Backend): WaitingRun {
    const { stream } = this.#options.conversation
    const waiting = new WaitingRun(target, { lane: this.#laneFor(target), stream, clock: this.#deps.clock })
    this.current = waiting
    return waiting
  }

  get #retries(): RequestRetries {
    return (this.#retriesIfAny ??= new RequestRetries(this.#deps, this.#caller, this.#options.request))
  }

  /** Calls a backend and, if it is slow, a second one at the same time; the faster one answers (contract 7.30). */
  #askFirst(backend: Backend, written: BackendRequestBody): Promise<Asked> {
    const delayMs = this.attempts.length > 0 ? undefined : this.#hedging?.delayMs(backend)
    const first = this.#ask(backend, written)
    return delayMs === undefined ? first : this.#askBoth(backend, first, delayMs)
  }

  async #askBoth(backend: Backend, first: Promise<Asked>, delayMs: number): Promise<Asked> {
    if (!(await isPendingAfter(first, delayMs, this.#deps.clock))) return await first
    const second = this.#askSecond(backend)
    return await (second === undefined ? first : this.#fasterOf(first, second))
  }

  /** Starts the second call; undefined if no backend may be asked. */
  #askSecond(first: Backend): Promise<Asked> | undefined {
    const hedging = this.#hedging
    if (hedging === undefined || this.#asked >= maxAttempts || hedging.isUnderLoad) return undefined
    if (this.#deps.shedder?.sheds('retries') === true) return undefined
    const backend = this.#candidates.next((other) => hedging.mayAsk(other, first))
    if (backend === undefined) return undefined
    try {
      const written = writeFor(backend, this.#writer)
      this.#asked += 1
      this.#unfailed = 1
      this.#hedge = { backend }
      this.#hedgeBackend = backend.id
      return this.#ask(backend, written)
    } catch (error) {
      if (error instanceof ServiceError) return undefined
      throw error
    }
  }

  /** The attempt that has content first. The other one is aborted, and recorded before it. */
  async #fasterOf(first: Promise<Asked>, second: Promise<Asked>): Promise<Asked> {
    const { isSecond, result } = await firstSettled(first, second)
    const other = isSecond ? first : second
    if (isSecond && this.#hedge === undefined) {
      // It was cancelled, even if it had just begun to answer.
      const alone = await first
      if (alone instanceof AttemptRun) recordLast(this.attempts, alone.target)
      return alone
    }
    const otherRun = isSecond ? this.current : this.#hedge?.run
    this.#hedge = undefined
    if (result.status === 'rejected') {
      otherRun?.stop(asError(result.reason))
      await Promise.allSettled([other])
      throw result.reason
    }
    const { value } = result
    if (!(value instanceof AttemptRun)) {
      this.#unfailed = 0
      if (!isSecond) this.current = otherRun
      return (await other) ?? value
    }
    this.#faster = this.current = value
    otherRun?.observer?.lost()
    otherRun?.stop(new UpstreamError('cancelled'))
    const [lost] = await Promise.allSettled([other])
    if (lost?.status === 'fulfilled' && lost.value instanceof AttemptRun)
      lost.value.stop(new UpstreamError('cancelled'))
    recordLast(this.attempts, value.target)
    return value
  }

  /** Calls one backend, and retries it if its rejection says how. Returns the error to answer with if none is left. */
  async #ask(backend: Backend, first: BackendRequestBody): Promise<Asked> {
    let written = first
    let again: SecondAttempt | undefined
    let isRepeated = false
    for (;;) {
      if (this.#faster !== undefined) throw new UpstreamError('cancelled')
      const { backend: endpoint, body } = written
      // Before the call: a complete answer frees the body.
      const cacheable = this.#options.session === undefined || isCacheable(endpoint, body)
      const run = this.#start(endpoint)
      const trace = this.#options.request.trace?.attempt(endpoint)
      try {
        const { request, conversation, grantFor } = this.#options
        const { stream } = conversation
        const grant = grantFor?.(Buffer.byteLength(body)) ?? request.grant
        const headers = headersFor(endpoint, request, trace?.traceparent)
        await run.open({ body, stream, requestId: request.id, headers }, grant, this.#mayLeave)
      } catch (caught) {
        this.#end(run, trace, caught)
        const error = run.grant?.refusal ?? caught
        const next = secondAttempt(error, {
          backend,
          endpoint,
          sentLength: body.length,
          writer: this.#writer,
          learned: this.#failures.learned,
          earlier: again,
        })
        if (next !== undefined) {
          again = next
          written = again.written
          continue
        }
        const failures = this.#deps.breakers.failuresInARow(endpoint.id, this.#caller)
        if (!isRepeated && isTransientFailure(error, this.#deps.clock.monotonicMs() - run.startedMs, failures)) {
          isRepeated = true
          continue
        }
        return this.#failures.errorAfter(backend, error, this.retryCount)
      }
      again?.learn()
      this.#isCacheable = cacheable
      this.#end(run, trace)
      return run
    }
  }

  #start(backend: Backend): AttemptRun<Backend> {
    const { clock } = this.#deps
    const { conversation } = this.#options
    const lane = this.#laneFor(backend)
    const hedge = this.#hedge?.backend.id === backend.id ? this.#hedge : undefined
    const begun = { backend, caller: this.#caller, kind: this.#kind, isSecond: hedge !== undefined }
    const observer = beginAttempt(this.#deps, begun)
    const run = new AttemptRun(backend, { lane, stream: conversation.stream, clock, observer, conversation })
    if (hedge === undefined) this.current = run
    else hedge.run = run
    return run
  }

  #bodyFor(backend: Backend): BackendRequestBody {
    const written = this.#written
    this.#written = undefined
    if (written?.backend.id === backend.id) return written
    return writeFor(backend, this.#writer)
  }

  #end(run: AttemptRun, trace: AttemptTrace | undefined, error?: unknown): void {
    run.reportError(this.#deps.providerErrors, this.#options.request.id)
    this.#options.request.spending?.ended(run.bill, error)
    if (error === undefined) this.#retriesIfAny?.refund()
    else this.#retriesIfAny?.failed()
    const isHedge = this.#hedgeBackend === run.target.id
    const about = isHedge ? ({ hedge: true } as const) : this.#aboutRequest
    if (!isHedge) this.#aboutRequest = undefined
    const record = Object.assign(attemptRecord(run, this.#deps.clock.monotonicMs(), error), about)
    this.attempts.push(record)
    trace?.ended(record, error === undefined)
    if (error === undefined) this.trace = trace
    logConfigurationFault(this.#deps.log, { backend: run.target.id, requestId: this.#options.request.id }, error)
  }

  #exhausted(): ServiceError {
    const { profile } = this.#options.conversation
    const candidates = this.#candidates
    const unasked = this.#skippedBackends ?? []
    const { lacking, isUncommitted } = this.#failures
    if (lacking !== undefined && !isUncommitted && unasked.length === 0 && !candidates.hasUsable)
      return notCapable(lacking, profile, this.#deps.formats(this.#options.request.format).inputField)
    const { attempts } = this
    const retryCount = sentRetryCount(attempts)
    return exhaustedError({ profile, attempts, retryCount, candidates, unasked, nowMs: this.#deps.clock.nowMs() })
  }
}
