import { asError } from '../domain/bugs.ts'
import type { AnswerEvent, Conversation, Usage } from '../domain/conversation.ts'
import { ServiceError } from '../domain/errors.ts'
import type { FusionRecord } from '../domain/fusion-record.ts'
import type { FusionDefaults } from '../domain/profiles.ts'
import type { RandomBytes } from '../domain/random.ts'
import type { RequestOutcome } from '../domain/requests.ts'
import { UpstreamError, type Attempt } from '../domain/upstream.ts'
import type { AnswerContext, AnswerWriter, StreamFailure } from '../formats/format.ts'
import { AttemptRun } from './attempt.ts'
import type { Failover, FailoverParts } from './failover.ts'
import { fuse } from './fusion/fusion.ts'
import { assertFusable, decideGate } from './fusion/gate.ts'
import { membersOf } from './fusion/members.ts'
import type { FusionPort } from './fusion/ports.ts'
import { settingsFrom } from './fusion/settings.ts'
import type { Lane } from './lane.ts'
import { callMember } from './member-call.ts'
import type { Backend, ModelRequest, UpstreamCall } from './ports.ts'
import { charsPerToken } from './estimate-tokens.ts'

/** What `X-Svc-Router-Upstream` says of a fused answer: no single backend gave it. */
const fusedUpstream = 'fusion'
/** Of the time for the whole request, so that the best of what is there is sent before it is over. */
const shareOfTime = 0.9
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

export interface FusedAnswerOf {
  readonly request: ModelRequest
  readonly context: AnswerContext
  /** The members; at least one. */
  readonly backends: readonly Backend[]
  /** Milliseconds for the whole request (contract 5.5). */
  readonly totalMs: number
  /** What the operator says of how it deliberates. */
  readonly defaults?: FusionDefaults | undefined
  /** The backend that wrote in this conversation before. */
  readonly pinned?: string | undefined
  /** @see FusionPort.remember */
  readonly remember?: FusionPort['remember'] | undefined
}

export interface FusedAnswerParts extends FailoverParts {
  readonly randomBytes: RandomBytes
  readonly keepAliveMs: number
}

/**
 * The backends that deliberate about this request for `svc-router/fusion`; undefined where one model answers it alone:
 * the gate says so, or all are cooling, of which a failover tells the caller best.
 * @throws ServiceError `unsupported_parameter`, `invalid_request` where no fused answer can be what was asked for
 */
export function fusionMembers(
  request: ModelRequest,
  conversation: Conversation,
  backends: readonly Backend[],
  { health }: Pick<FailoverParts, 'health'>,
): readonly Backend[] | undefined {
  assertFusable(conversation, request.fusionDepth ?? 0)
  if (request.isOwnQuestion === true || !decideGate(conversation).run) return undefined
  const members = backends.filter(({ id }) => health.availability(id).usable)
  return members.length === 0 ? undefined : members
}

/**
 * Answers by deliberation where a `Failover` would ask one backend after the other: for the course it is one attempt at
 * one backend, which is all members together.
 */
export class FusedAnswer implements Pick<Failover, 'attempts' | 'current' | 'retryCount' | 'firstContent' | 'release'> {
  /** What became of every sub-call, in the order in which they ended. */
  readonly attempts: Attempt[] = []
  current: AttemptRun | undefined
  /** No backend failed before this one: what failed inside of it was made up for. */
  readonly retryCount = 0
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

  constructor(parts: FusedAnswerParts, of: FusedAnswerOf) {
    this.#parts = parts
    this.#of = of
    this.keepAliveMs = Math.min(parts.keepAliveMs, longestSilenceMs)
    const { request, context, backends } = of
    this.lane = new FusedLane(parts.formats(request.format).writeAnswer(context), context.conversation.stream)
    this.backend = {
      id: fusedUpstream,
      failureDomain: fusedUpstream,
      format: request.format,
      model: context.conversation.profile,
      simulated: backends.some(({ simulated }) => simulated),
      issuer: fusedUpstream,
      timeouts: {
        connectMs: unlimitedMs,
        firstContentMs: unlimitedMs,
        wholeAnswerMs: unlimitedMs,
        idleMs: unlimitedMs,
        totalMs: unlimitedMs,
      },
      dialect: backends[0]!.dialect,
      call: () => this.#deliberate(),
    }
  }

  /** @throws ServiceError where no member answered, and whatever `stop` was told */
  async firstContent(): Promise<AttemptRun> {
    const { request, context } = this.#of
    const { stream } = context.conversation
    const run = new AttemptRun(this.backend, this.lane, stream, this.#parts.clock)
    this.current = run
    await run.open({ body: '', stream, requestId: request.id })
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

  #deliberate(): UpstreamCall {
    const run = this.current!
    const { clock, randomBytes } = this.#parts
    const leave = new AbortController()
    let caughtUp: PromiseWithResolvers<void> | undefined
    const port: FusionPort = {
      clock,
      random: randomBytes,
      ...(this.#of.remember && { remember: this.#of.remember }),
      emit: (events) => {
        if (this.lane.take(events)) run.onData(nothing)
        else this.onProgress?.()
        return caughtUp?.promise
      },
      callModel: (member, call, signal) => {
        const { request, context, backends } = this.#of
        const backend = backends.find(({ id }) => id === member.id)!
        const record = (attempt: Attempt): void => void this.attempts.push(attempt)
        const depth = (request.fusionDepth ?? 0) + 1
        return callMember({ parts: this.#parts, context, backend, call, depth, record }, signal)
      },
    }
    const fused = this.#fuse(port, leave.signal)
    this.#ended = fused.then(
      () => {},
      () => {},
    )
    fused.then(
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

  /** Gives why there is no whole answer, if so. */
  async #fuse(port: FusionPort, signal: AbortSignal): Promise<ServiceError | undefined> {
    const { context, backends, totalMs, defaults = {}, pinned } = this.#of
    const { conversation } = context
    const members = membersOf(backends)
    const usual = settingsFrom(defaults, members, conversation.stream)
    const limitMs = totalMs * shareOfTime
    const settings = limitMs < usual.totalMs ? settingsFrom(defaults, members, conversation.stream, limitMs) : usual
    const request = { conversation, members, settings, ...(pinned === undefined ? {} : { pinned }) }
    const { error, usage, record } = await fuse(request, port, signal)
    this.lane.usage = usage
    this.#fusions.push(record)
    if (error?.code !== 'server_is_overloaded') return error
    const attempts = this.attempts.map(({ backend, outcome }) => ({ backend, outcome }))
    return new ServiceError(error.code, { ...error.facts, attempts })
  }
}

/** The way of a fused answer from its events to the caller: there are no bytes to be read. */
class FusedLane implements Lane {
  readonly encoding = 'utf8'
  /** Progress is no content: as long as there is nothing else, nothing was answered. */
  hasContent = false
  finished = false
  readonly alive = true
  readonly fault = undefined
  usage: Usage | undefined
  #characters = 0
  #unwritten: AnswerEvent[] = []
  readonly #writer: AnswerWriter
  readonly #isStream: boolean

  constructor(writer: AnswerWriter, isStream: boolean) {
    this.#writer = writer
    this.#isStream = isStream
  }

  get roughTokens(): number {
    return Math.ceil(this.#characters / charsPerToken)
  }

  /** Takes what is to be written next; gives whether the answer has begun. */
  take(events: readonly AnswerEvent[]): boolean {
    for (const event of events) {
      this.#unwritten.push(event)
      if (event.type === 'usage') this.usage = event.usage
      else if (event.type === 'finish') this.finished = true
      if ('text' in event) this.#characters += event.text.length
      // A whole answer has content when it is complete.
      this.hasContent ||= this.#isStream && event.type !== 'start' && event.type !== 'reasoning'
    }
    return this.hasContent
  }

  push(): string {
    return this.#isStream ? this.#write() : ''
  }

  end(): string | Buffer {
    if (!this.finished) throw new UpstreamError('broken')
    this.hasContent = true
    if (this.#isStream) return this.#write() + this.#writer.writeEnd()
    return Buffer.from(JSON.stringify(this.#writer.writeWhole(this.#unwritten)))
  }

  /** How far it is, where that was not said yet. */
  keepAlive(): string {
    return this.#write() || this.#writer.writeKeepAlive()
  }

  failure(failure: StreamFailure): string {
    return this.#writer.writeFailure(failure)
  }

  #write(): string {
    const events = this.#unwritten
    this.#unwritten = []
    return this.#writer.writeEvents(events)
  }
}
