import type { AnswerEvent, Usage } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { FusionRecord } from '../../domain/fusion-record.ts'
import type { RequestOutcome } from '../../domain/requests.ts'
import { UpstreamError, type Attempt } from '../../domain/upstream.ts'
import type { AnswerContext } from '../../formats/format.ts'
import { asError } from '../../runtime/describe-bug.ts'
import type { RandomBytes } from '../../runtime/random.ts'
import { alwaysGranted } from '../auth/call-grant.ts'
import type { SessionTurn } from '../cache/session-turn.ts'
import type { Backend, AllowedRequest, UpstreamCall } from '../ports.ts'
import type { AnswerOrigin, AnswerSource, OwnStream } from '../request/answer-source.ts'
import { AttemptRun } from '../request/attempt.ts'
import type { FailoverDeps } from '../request/failover-deps.ts'
import type { FusionPort } from './engine/ports.ts'
import { FusedLane } from './fused-lane.ts'
import { callMember } from './member-call.ts'

/** The value of `X-Svc-Router-Upstream` for an answer from more than one backend. */
const fusedUpstream = 'fusion'
/** A deliberation takes long, so its stream is opened this early, with progress. */
export const progressAfterMs = 150
/**
 * A deliberation can be silent for more than a minute; keep-alives at this interval hold agents that give up after
 * three seconds of silence (contract 10.11, 15.10, decision 25).
 */
const longestSilenceMs = 2_000
/** Maximum wait for an aborted fusion to settle its promises. */
const longestEndMs = 1_000
/** Events are passed alongside the bytes. */
const nothing = Buffer.alloc(0)

/** How a fused answer ended: with `finish` emitted, or with the error that replaces it. */
export interface FusionEnd {
  /** Why there is no complete answer; absent if there is one or the client disconnected. */
  readonly error?: Error | undefined
  readonly usage: Usage
}

/** What a fused answer may use of the request that it belongs to. */
export interface FusionSession {
  readonly request: AllowedRequest
  readonly context: AnswerContext
  readonly accountId: string
  readonly deps: FusedAnswerDeps
  /** The engine's port; the events that it emits are the answer. */
  readonly port: FusionPort
  /** Aborted when the client disconnects or the request ends. */
  readonly signal: AbortSignal
  /** Time limit for the whole request, milliseconds (contract 9.6). */
  readonly totalMs: number
  /** The request as a turn of its session; absent if no provider caches its prompt. */
  readonly turn: SessionTurn | undefined
  /** Records the outcome of a sub-call. */
  record(attempt: Attempt): void
  /** Records a deliberation. */
  recordFusion(fusion: FusionRecord): void
  /** Reports that a single backend gave the answer after all, and how many failed before it (contract 16.27). */
  answeredBy(backend: Backend, retryCount: number): void
}

export interface FusedAnswerOptions {
  readonly request: AllowedRequest
  readonly context: AnswerContext
  readonly accountId: string
  /** All backends that may be called; at least one. */
  readonly backends: readonly Backend[]
  readonly totalMs: number
  readonly turn?: SessionTurn | undefined
  /** @see FusionPort.remember */
  readonly remember?: FusionPort['remember'] | undefined
  /** Produces the answer. Rejects only on a bug or with the error that ends the request. */
  readonly make: (session: FusionSession) => Promise<FusionEnd>
}

export interface FusedAnswerDeps extends FailoverDeps {
  readonly randomBytes: RandomBytes
  readonly keepAliveMs: number
}

/**
 * Takes the place of a `Failover`: for the request run, an answer from several models is one attempt, and is charged
 * once (contract 6.8). The attempt has no deadlines: the request run and the fusion enforce theirs.
 */
export class FusedAnswer implements AnswerSource {
  /** The outcome of every sub-call, in order of completion. */
  readonly attempts: Attempt[] = []
  current: AttemptRun | undefined
  /**
   * Failures inside a fusion are handled inside it, so this is 0 unless a single backend gave the answer (contract
   * 15.11).
   */
  retryCount = 0
  /** All members together, unless a single backend gave the answer. Names no model. */
  origin: AnswerOrigin
  readonly ownStream: OwnStream
  readonly #lane: FusedLane
  readonly #deps: FusedAnswerDeps
  readonly #options: FusedAnswerOptions
  readonly #fusions: FusionRecord[] = []
  #ended: Promise<void> = Promise.resolve()

  constructor(deps: FusedAnswerDeps, options: FusedAnswerOptions) {
    this.#deps = { ...deps, learned: deps.learned.of(options.accountId) }
    this.#options = options
    const { request, context, backends } = options
    this.origin = { id: fusedUpstream, simulated: backends.some(({ simulated }) => simulated) }
    this.#lane = new FusedLane(deps.formats(request.format).writeAnswer(context), context.conversation.stream)
    this.ownStream = {
      lane: this.#lane,
      silenceMs: progressAfterMs,
      keepAliveMs: Math.min(deps.keepAliveMs, longestSilenceMs),
      onProgress: undefined,
    }
  }

  /** @throws ServiceError if no model answered, and the error passed to `stop` */
  async firstContent(): Promise<AttemptRun> {
    const { request, context } = this.#options
    const { stream } = context.conversation
    const target = { id: fusedUpstream, call: () => this.#call() }
    const run = new AttemptRun(target, { lane: this.#lane, stream, clock: this.#deps.clock })
    this.current = run
    await run.open({ body: '', stream, requestId: request.id }, alwaysGranted)
    return run
  }

  /** The records of the fusions. */
  get recordMembers(): Pick<RequestOutcome, 'fusions'> {
    return this.#fusions.length === 0 ? {} : { fusions: this.#fusions }
  }

  /** Aborts what is still running, and waits until its records are complete. */
  async end(): Promise<void> {
    this.current?.stop(new UpstreamError('cancelled'))
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = this.#deps.clock.after(longestEndMs, resolve)
    await Promise.race([this.#ended, promise])
    timer.cancel()
  }

  #call(): UpstreamCall {
    const run = this.current!
    const leave = new AbortController()
    let caughtUp: PromiseWithResolvers<void> | undefined
    const say = (events: readonly AnswerEvent[], isAnswer: boolean): Promise<void> | undefined => {
      if (this.#lane.take(events, isAnswer)) run.onData(nothing)
      else this.ownStream.onProgress?.()
      return caughtUp?.promise
    }
    const made = this.#make(say, leave.signal)
    this.#ended = made.then(
      () => {},
      () => {},
    )
    made.then(
      (error) => (error === undefined ? run.onEnd() : run.stop(error)),
      (error: unknown) => run.stop(asError(error)),
    )
    return {
      pause: () => void (caughtUp ??= Promise.withResolvers()),
      resume: () => {
        caughtUp?.resolve()
        caughtUp = undefined
      },
      abort: () => leave.abort(),
    }
  }

  async #make(
    say: (events: readonly AnswerEvent[], isAnswer: boolean) => Promise<void> | undefined,
    signal: AbortSignal,
  ): Promise<Error | undefined> {
    const { request, context, accountId, totalMs, turn, backends, remember, make } = this.#options
    const deps = this.#deps
    const record = (attempt: Attempt): void => void this.attempts.push(attempt)
    const depth = (request.fusionDepth ?? 0) + 1
    const { error, usage } = await make({
      request,
      context,
      accountId,
      deps,
      signal,
      totalMs,
      turn,
      record,
      recordFusion: (fusion) => void this.#fusions.push(fusion),
      port: {
        ...(remember && { remember }),
        clock: deps.clock,
        random: deps.randomBytes,
        emit: (events) => say(events, true),
        emitProgress: (events) => void say(events, false),
        callModel: (member, call, callSignal) => {
          const backend = backends.find(({ id }) => id === member.id)!
          return callMember(
            {
              deps,
              context,
              accountId,
              backend,
              call,
              depth,
              record,
              grant: request.grant,
              spending: request.spending,
              trace: request.trace,
              held: request.held,
              // A session is no reason to mark the questions of a panel and a judge: they differ each time.
              cache: request.cache && { ...request.cache, continuation: undefined },
            },
            callSignal,
          )
        },
      },
      answeredBy: (backend, retryCount) => {
        this.origin = { ...this.origin, id: backend.id }
        this.retryCount = retryCount
      },
    })
    this.#lane.usage = usage
    if (!(error instanceof ServiceError)) return error
    // A stream that has begun is counted, which this error denies.
    if (error.code === 'record_unavailable' && this.#lane.hasContent) return new UpstreamError('broken')
    return this.#withAttempts(error)
  }

  /** Adds the outcome of every sub-call to an error that says that no backend was available (contract 4.9). */
  #withAttempts(error: ServiceError): ServiceError {
    if (error.code !== 'server_is_overloaded') return error
    const attempts = this.attempts.map(({ backend, outcome }) => ({ backend, outcome }))
    return new ServiceError(error.code, { ...error.facts, attempts })
  }
}
