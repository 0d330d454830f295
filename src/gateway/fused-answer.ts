import { alwaysGranted } from './call-grant.ts'
import { asError } from '../domain/bugs.ts'
import type { AnswerEvent, Usage } from '../domain/conversation.ts'
import { ServiceError } from '../domain/errors.ts'
import type { FusionRecord } from '../domain/fusion-record.ts'
import type { RandomBytes } from '../domain/random.ts'
import type { RequestOutcome } from '../domain/requests.ts'
import { UpstreamError, type Attempt } from '../domain/upstream.ts'
import type { AnswerContext } from '../formats/format.ts'
import { AttemptRun } from './attempt.ts'
import type { Failover, FailoverParts } from './failover.ts'
import { FusedLane } from './fused-lane.ts'
import type { FusionPort } from './fusion/ports.ts'
import { callMember } from './member-call.ts'
import type { Backend, AllowedRequest, UpstreamCall } from './ports.ts'

/** What `X-Svc-Router-Upstream` says of an answer that no single backend gave. */
const fusedUpstream = 'fusion'
/** A deliberation takes long: its stream is opened this soon, with what there is to say. */
export const progressAfterMs = 150
/** A deliberation is silent for a minute and more: an agent that gives up after three seconds of silence stays (decision 25). */
const longestSilenceMs = 2_000
/** The course and the fusion keep the limits; those of the attempt never come first. */
const unlimitedMs = 86_400_000
/** What was given up is over as soon as its promises have run. */
const longestEndMs = 1_000
/** The events are handed over beside the bytes. */
const nothing = Buffer.alloc(0)

/** How a fused answer ended: with its `finish` emitted, or with what is in its place. */
export interface FusedEnd {
  /** Why there is no whole answer; absent where there is one or the caller has left. */
  readonly error?: Error | undefined
  readonly usage: Usage
}

/** All that the making of a fused answer has to do with the request that it is for. */
export interface FusedSurface {
  readonly request: AllowedRequest
  readonly context: AnswerContext
  readonly accountId: string
  readonly parts: FusedAnswerParts
  /** The engine's port; what it emits is the answer. */
  readonly port: FusionPort
  /** Aborted when the caller leaves or the request is ended. */
  readonly signal: AbortSignal
  /** Milliseconds for the whole request (contract 9.6). */
  readonly totalMs: number
  /** Notes what became of a sub-call. */
  record(attempt: Attempt): void
  /** Notes the trail of a deliberation. */
  recordFusion(fusion: FusionRecord): void
  /** Says that one backend gives the answer after all, and how many failed before it. */
  answeredBy(backend: Backend, retryCount: number): void
}

export interface FusedAnswerOf {
  readonly request: AllowedRequest
  readonly context: AnswerContext
  readonly accountId: string
  /** Whoever may be asked; at least one. */
  readonly backends: readonly Backend[]
  readonly totalMs: number
  /** @see FusionPort.remember */
  readonly remember?: FusionPort['remember'] | undefined
  /** Makes the answer. Rejects only with a bug, or with what ends the request. */
  readonly make: (surface: FusedSurface) => Promise<FusedEnd>
}

export interface FusedAnswerParts extends FailoverParts {
  readonly randomBytes: RandomBytes
  readonly keepAliveMs: number
}

/**
 * Stands where a `Failover` would ask one backend after the other: for the course an answer that several models have a
 * part in is one attempt at one backend, which is all of them together.
 */
export class FusedAnswer implements Pick<Failover, 'attempts' | 'current' | 'retryCount' | 'firstContent' | 'release'> {
  /** What became of every sub-call, in the order in which they ended. */
  readonly attempts: Attempt[] = []
  current: AttemptRun | undefined
  /** What failed inside was made up for inside, unless one backend gave the answer. */
  retryCount = 0
  readonly backend: Backend
  readonly silenceMs = progressAfterMs
  /** Silence after which its stream is kept alive. */
  readonly keepAliveMs: number
  readonly lane: FusedLane
  /** Told when there is something to say that is no content yet. */
  onProgress: (() => void) | undefined
  readonly #parts: FusedAnswerParts
  readonly #of: FusedAnswerOf
  readonly #fusions: FusionRecord[] = []
  #ended: Promise<void> = Promise.resolve()
  #upstream = fusedUpstream

  constructor(parts: FusedAnswerParts, of: FusedAnswerOf) {
    this.#parts = parts
    this.#of = of
    this.keepAliveMs = Math.min(parts.keepAliveMs, longestSilenceMs)
    const { request, context, backends } = of
    this.lane = new FusedLane(parts.formats(request.format).writeAnswer(context), context.conversation.stream)
    const upstream = (): string => this.#upstream
    this.backend = {
      get id() {
        return upstream()
      },
      failureDomain: fusedUpstream,
      format: request.format,
      model: context.conversation.profile,
      simulated: backends.some(({ simulated }) => simulated),
      issuer: fusedUpstream,
      timeouts: {
        connectMs: unlimitedMs,
        headersMs: unlimitedMs,
        firstContentMs: unlimitedMs,
        wholeAnswerMs: unlimitedMs,
        idleMs: unlimitedMs,
        totalMs: unlimitedMs,
      },
      dialect: backends[0]!.dialect,
      call: () => this.#call(),
    }
  }

  /** @throws ServiceError where nobody answered, and whatever `stop` was told */
  async firstContent(): Promise<AttemptRun> {
    const { request, context } = this.#of
    const { stream } = context.conversation
    const run = new AttemptRun(this.backend, this.lane, stream, this.#parts.clock)
    this.current = run
    await run.open({ body: '', stream, requestId: request.id }, alwaysGranted)
    return run
  }

  /** What the request's record says of it. */
  get trail(): Pick<RequestOutcome, 'fusions'> {
    return this.#fusions.length === 0 ? {} : { fusions: this.#fusions }
  }

  /** Gives up what is still under way, and waits until its trail is complete. */
  async end(): Promise<void> {
    this.current?.stop(new UpstreamError('cancelled'))
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = this.#parts.clock.after(longestEndMs, resolve)
    await Promise.race([this.#ended, promise])
    timer.cancel()
  }

  /** Nothing was taken. */
  release(): void {}

  #call(): UpstreamCall {
    const run = this.current!
    const leave = new AbortController()
    let caughtUp: PromiseWithResolvers<void> | undefined
    const say = (events: readonly AnswerEvent[], isAnswer: boolean): Promise<void> | undefined => {
      if (this.lane.take(events, isAnswer)) run.onData(nothing)
      else this.onProgress?.()
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
    const { request, context, accountId, totalMs, backends, remember, make } = this.#of
    const parts = this.#parts
    const record = (attempt: Attempt): void => void this.attempts.push(attempt)
    const depth = (request.fusionDepth ?? 0) + 1
    const { error, usage } = await make({
      request,
      context,
      accountId,
      parts,
      signal,
      totalMs,
      record,
      recordFusion: (fusion) => void this.#fusions.push(fusion),
      port: {
        ...(remember && { remember }),
        clock: parts.clock,
        random: parts.randomBytes,
        emit: (events) => say(events, true),
        tell: (events) => void say(events, false),
        callModel: (member, call, callSignal) => {
          const backend = backends.find(({ id }) => id === member.id)!
          return callMember(
            { parts, context, accountId, backend, call, depth, record, grant: request.grant, held: request.held },
            callSignal,
          )
        },
      },
      answeredBy: (backend, retryCount) => {
        this.#upstream = backend.id
        this.retryCount = retryCount
      },
    })
    this.lane.usage = usage
    return error instanceof ServiceError ? this.#withAttempts(error) : error
  }

  /** A refusal for which nobody was at hand says what became of all who were asked (contract 4.9). */
  #withAttempts(error: ServiceError): ServiceError {
    if (error.code !== 'server_is_overloaded') return error
    const attempts = this.attempts.map(({ backend, outcome }) => ({ backend, outcome }))
    return new ServiceError(error.code, { ...error.facts, attempts })
  }
}
