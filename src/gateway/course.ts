import { describeBug } from '../domain/bugs.ts'
import type { Clock, Timer } from '../domain/clock.ts'
import { ServiceError } from '../domain/errors.ts'
import type { Links } from '../domain/links.ts'
import type { RequestOutcome } from '../domain/requests.ts'
import { UpstreamError } from '../domain/upstream.ts'
import type { AttemptRun } from './attempt.ts'
import { relayFor, type WrittenBody } from './backend-body.ts'
import type { CourseOf } from './course-of.ts'
import type { CommitWait } from './commit-wait.ts'
import { Delivery, type DeliveryEnd } from './delivery.ts'
import { Failover, type FailoverParts } from './failover.ts'
import type { FusedAnswer } from './fused-answer.ts'
import { keptFlow, keepWhole } from './kept-flow.ts'
import type { Lane, LaneChoice } from './lane.ts'
import { openLane } from './open-lane.ts'
import type { Backend } from './ports.ts'
import { streamFailure } from './stream-failure.ts'
import { usageOf } from './usage-of.ts'

export interface CourseParts extends FailoverParts {
  readonly commits: CommitWait
  readonly clock: Clock
  readonly links: Links
  readonly keepAliveMs: number
}

/** How a request ended. `refusal` is set if nothing was written, so the error can become a whole response. */
export interface CourseEnd {
  readonly outcome: RequestOutcome
  readonly refusal?: ServiceError
}

/** Runs one admitted request from its first attempt to its record. Everything that ends a request ends it here. */
export class Course {
  readonly #parts: CourseParts
  readonly #of: CourseOf
  readonly #failover: Pick<Failover, 'attempts' | 'current' | 'retryCount' | 'firstContent' | 'release'> &
    Partial<Pick<Failover, 'passedBy'>>
  readonly #startedMs: number
  #deadline: Timer | undefined
  #silence: Timer | undefined
  place = -1
  #gone = false
  #opened = false
  #settled = false
  /** Creates lanes once the run has opened the stream itself: all of them continue the same response. */
  #ownLane: ((backend: Backend) => Lane) | undefined
  #firstContentMs: number | undefined

  /** `written` is the backend request body that was already written, if any. */
  constructor(parts: CourseParts, of: CourseOf, written?: WrittenBody) {
    this.#parts = parts
    this.#of = of
    this.#startedMs = parts.clock.monotonicMs()
    const laneFor = (backend: Backend): Lane => this.#ownLane?.(backend) ?? this.#openLane(backend)
    const { request, accountId, backends, context } = of
    this.#failover =
      of.fused ??
      new Failover(parts, { request, accountId, conversation: context.conversation, backends, written }, laneFor)
  }

  /** Writes the answer to the sink; the result holds the error if there is no answer. */
  async run(): Promise<CourseEnd> {
    const { clock, budget } = this.#parts
    const { sink, totalMs, context, accountId, fused } = this.#of
    sink.onGone(() => this.#leave())
    this.#deadline = clock.after(totalMs, () => this.#passDeadline())
    if (fused !== undefined) fused.onProgress = () => this.#tellProgress(fused)
    if (context.conversation.stream) this.#watchSilence(fused?.silenceMs)
    budget.requestStarted(accountId)
    try {
      if (this.#gone) throw new UpstreamError('cancelled')
      const run = await this.#failover.firstContent()
      this.#failover.release()
      this.#firstContentMs = this.#elapsedMs()
      return { outcome: await (context.conversation.stream ? this.#stream(run) : this.#sendWhole(run)) }
    } catch (error) {
      return await this.#refuse(error)
    } finally {
      this.#failover.release()
      budget.requestEnded(accountId)
      this.#deadline.cancel()
      this.#silence?.cancel()
    }
  }

  /**
   * Ends the request because the server is stopping: a stream gets a failure event, any other request an error
   * response.
   */
  cut(): void {
    const { current, retryCount } = this.#failover
    current?.stop(new ServiceError('restarting', { retryCount, retryAfterSeconds: 1 }))
  }

  async #sendWhole(run: AttemptRun): Promise<RequestOutcome> {
    const { sink, units, keeping, admission } = this.#of
    const persisted = keeping && (await keepWhole(run, keeping))
    const outcome = this.#outcome(units, this.#gone ? 'client_closed' : undefined)
    // Settled first, so that one record holds everything; the delivery mark follows with the first byte.
    this.#settle(outcome, this.#gone ? 'none' : 'due')
    if (this.#gone) return outcome
    const written = admission.durable()
    if (written !== undefined) await this.#parts.commits.of(written)
    const send = (answer: string | Buffer): void => this.#sendFirst(() => sink.end(persisted ?? answer))
    run.flowTo({ write: send, ended: send, broke: () => {} })
    return outcome
  }

  async #stream(run: AttemptRun): Promise<RequestOutcome> {
    const { sink, units, keeping, fused, admission, request } = this.#of
    const { clock, commits } = this.#parts
    const { keepAliveMs } = fused ?? this.#parts
    const written = admission.durable()
    if (written !== undefined) await commits.of(written)
    if (this.#gone) throw new UpstreamError('cancelled')
    const { promise: delivered, resolve } = Promise.withResolvers<DeliveryEnd>()
    this.#sendFirst(() => run.flowTo(keptFlow(run, new Delivery(run, sink, clock, keepAliveMs, resolve), keeping)))
    const errorCode = this.#finishStream(run, await delivered)
    const totalMs = this.#elapsedMs()
    run.tellError(this.#parts.providerErrors, request.id)
    if (fused !== undefined) await fused.end()
    // The caller already has the whole answer; only its record waits for the usage.
    await run.lateUsage
    const outcome = { ...this.#outcome(units, errorCode), totalMs: Math.round(totalMs) }
    this.#settle(outcome, 'done')
    return outcome
  }

  /** Writes the failure event that explains why the stream broke; returns the error code to record. */
  #finishStream(run: AttemptRun, end: DeliveryEnd): RequestOutcome['errorCode'] {
    const { sink, request } = this.#of
    if (end.whole) return undefined
    if (end.slowReader) {
      // A client that reads nothing would not read the failure event either.
      this.#gone = true
      sink.drop()
    }
    const error = this.#endReason(end.error)
    if (this.#gone) return 'client_closed'
    const failure = streamFailure(error, this.#parts.links, request.id)
    sink.end(run.lane.failure(failure), run.lane.encoding)
    return error.code
  }

  /**
   * Opens the response and sends its first bytes. Everything is prepared before the delivery mark and sent directly
   * after it (contract 6.14).
   */
  #sendFirst(send: () => void): void {
    const { sink, admission } = this.#of
    sink.hold()
    this.#open(this.#failover.current?.backend)
    send()
    try {
      admission.deliver()
    } catch (cause) {
      // Bytes that the connection has buffered cannot be taken back.
      sink.drop()
      throw new ServiceError('record_unavailable', { retryAfterSeconds: 1, cause })
    }
    sink.release()
  }

  #settle(outcome: RequestOutcome, delivery: 'due' | 'done' | 'none'): void {
    // A whole answer whose record could not be written is already settled, and its charge was reverted.
    if (this.#settled) return
    this.#settled = true
    this.#of.admission.settle(outcome, delivery)
  }

  #open(backend: Backend | undefined): void {
    if (this.#opened) return
    this.#opened = true
    this.#of.sink.open({
      stream: this.#of.context.conversation.stream,
      upstream: backend?.id,
      model: this.#of.fused === undefined ? backend?.model : undefined,
      simulated: backend?.simulated ?? false,
      retryCount: this.#failover.retryCount,
      signals: this.#of.admission.signals(),
    })
  }

  /** Before any content: keeps the caller's stream alive in its own format (contract 10.1, 10.10). */
  #watchSilence(silentMs = (this.#of.fused ?? this.#parts).keepAliveMs): void {
    this.#silence = this.#parts.clock.after(silentMs, () => {
      if (this.#firstContentMs !== undefined || this.#gone) return
      this.#beginEarly()
      this.#watchSilence()
    })
  }

  #beginEarly(): void {
    const { sink, request, fused } = this.#of
    this.#open(fused?.backend)
    if (fused !== undefined) return this.#tellProgress(fused)
    const comment = this.#parts.relays(request.format).stream?.keepAlive({ sequence: -1, inserted: 0 })
    let text = comment
    if (text === undefined) {
      this.#ownLane ??= this.#continuingLanes()
      text = this.#ownLane(this.#of.backends[0]!).keepAlive() ?? ''
    }
    sink.write(text, 'utf8')
  }

  /** On an open stream: reports the progress of a fused answer, or sends a keep-alive. */
  #tellProgress({ lane }: FusedAnswer): void {
    if (this.#opened && !this.#gone) this.#of.sink.write(lane.keepAlive(), lane.encoding)
  }

  /** From here on, one writer writes the whole stream, whichever backend answers. */
  #continuingLanes(): (backend: Backend) => Lane {
    const { request, context } = this.#of
    const writer = this.#parts.formats(request.format).writeAnswer(context)
    const lane = (backend: Backend): Lane => this.#laneWith(backend, { writeAnswer: () => writer }, undefined)
    this.#failover.current?.changeLane(lane(this.#failover.current.backend))
    return lane
  }

  #openLane(backend: Backend): Lane {
    const { request, fused } = this.#of
    if (fused !== undefined) return fused.lane
    const relay = relayFor(backend, request, this.#parts.relays)
    return this.#laneWith(backend, this.#parts.formats(request.format), relay)
  }

  #laneWith(backend: Backend, client: LaneChoice['client'], relay: LaneChoice['relay']): Lane {
    const { reportsModel, request } = this.#of
    const context = reportsModel === true ? { ...this.#of.context, servedModel: backend.model } : this.#of.context
    const backendFormat = this.#parts.formats(backend.format)
    const refusesOurCalls = context.report !== undefined
    return openLane({ context, backend, client, backendFormat, relay, refusesOurCalls, held: request.held })
  }

  /** Handles everything that ends the request without a complete answer. */
  async #refuse(thrown: unknown): Promise<CourseEnd> {
    const { sink, units, request, fused } = this.#of
    const error = this.#endReason(thrown)
    if (fused !== undefined) await fused.end()
    const isDispatched = this.#failover.current !== undefined
    // A deadline that the caller set counts as the caller disconnecting (contract 6.7).
    const hasLeft = this.#gone || (error.code === 'upstream_timeout' && request.timeoutMs !== undefined)
    const outcome = this.#outcome(hasLeft && isDispatched ? units : 0, this.#gone ? 'client_closed' : error.code)
    this.#settle(outcome, 'none')
    this.#failover.current?.stop(new UpstreamError('cancelled'))
    if (this.#gone) return { outcome }
    if (!this.#opened) return { outcome, refusal: error }
    const failure = streamFailure(error, this.#parts.links, request.id)
    const lane = this.#ownLane?.(this.#of.backends[0]!) ?? this.#openLane(this.#of.backends[0]!)
    sink.end(lane.failure(failure), lane.encoding)
    return { outcome }
  }

  #endReason(thrown: unknown): ServiceError {
    if (thrown instanceof ServiceError) return thrown
    if (thrown instanceof UpstreamError)
      return new ServiceError('upstream_broken', { retryCount: this.#failover.retryCount })
    const { log } = this.#parts
    // An error that becomes a whole response is logged where that response is written.
    if (this.#opened || this.#gone)
      log({ event: 'internal_error', requestId: this.#of.request.id, ...describeBug(thrown) })
    return new ServiceError('internal_error', { cause: thrown })
  }

  #outcome(charged: number, errorCode?: RequestOutcome['errorCode']): RequestOutcome {
    const { current, attempts, passedBy } = this.#failover
    const usage =
      current !== undefined && this.#firstContentMs !== undefined ? usageOf(current.lane, this.#of.request) : undefined
    return {
      charged,
      attempts,
      totalMs: Math.round(this.#elapsedMs()),
      ...(passedBy === undefined ? {} : { passedBy }),
      ...(usage === undefined ? {} : { usage }),
      ...this.#of.fused?.trail,
      ...(errorCode === undefined ? {} : { errorCode }),
      ...(this.#firstContentMs === undefined ? {} : { firstContentMs: Math.round(this.#firstContentMs) }),
    }
  }

  #elapsedMs(): number {
    return this.#parts.clock.monotonicMs() - this.#startedMs
  }

  #leave(): void {
    this.#gone = true
    this.#failover.current?.stop(new UpstreamError('cancelled'))
  }

  #passDeadline(): void {
    const seconds = Math.round(this.#of.totalMs / 1000)
    const { profile } = this.#of.context.conversation
    const { current, retryCount } = this.#failover
    current?.stop(new ServiceError('upstream_timeout', { retryCount, words: { profile, seconds } }))
  }
}
