import type { Usage } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Links } from '../../domain/links.ts'
import type { RequestOutcome } from '../../domain/requests.ts'
import { isRefusal, UpstreamError, type Attempt } from '../../domain/upstream.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { describeBug } from '../../runtime/describe-bug.ts'
import { SetEntry } from '../../runtime/swap-remove-set.ts'
import type { Lane, LaneOptions } from '../lanes/lane.ts'
import { openLane } from '../lanes/open-lane.ts'
import type { Backend } from '../ports.ts'
import { contentRejected } from '../routing/rejection-errors.ts'
import { AnswerDelivery, type AnswerDeliveryEnd, costComment, openEnded } from './answer-delivery.ts'
import type { AnswerSource, OwnStream } from './answer-source.ts'
import { billFor } from './attempt-bill.ts'
import { withEnd } from './attempt-end.ts'
import type { AttemptRun } from './attempt.ts'
import { relayRulesFor } from './backend-request.ts'
import { describeFailure } from './describe-failure.ts'
import type { DurabilityWait } from './durability-wait.ts'
import type { FailoverDeps } from './failover-deps.ts'
import { Failover } from './failover.ts'
import { discardUnwanted, persistingFlow, persistWhole } from './persisting-flow.ts'
import type { RequestRunOptions } from './request-run-options.ts'
import { isReplaced, usageOf } from './request-usage.ts'
import { rescuable, rescue, rescueModeOf, type Delivered } from './rescue.ts'
import { shownSeconds } from './total-time.ts'

export interface RequestRunDeps extends FailoverDeps {
  readonly commits: DurabilityWait
  readonly clock: Clock
  readonly links: Links
  readonly keepAliveMs: number
}

/** How a request ended. `error` is set if nothing was written, so the error can become a whole response. */
export interface RequestRunEnd {
  readonly outcome: RequestOutcome
  readonly error?: ServiceError
}

/** Runs one admitted request from its first attempt to its record. Everything that ends a request ends it here. */
export class RequestRun extends SetEntry {
  readonly #deps: RequestRunDeps
  readonly #options: RequestRunOptions
  readonly #source: AnswerSource
  readonly #startedMs: number
  #deadline: Timer | undefined
  #silence: Timer | undefined
  #clientDisconnected = false
  #aborted: ServiceError | undefined
  #answerOpened = false
  #settled = false
  #costUsd: string | undefined
  /** Opens lanes once the run has opened the stream itself: all of them continue the same response. */
  #continuedLane: ((backend: Backend) => Lane) | undefined
  #firstContentMs: number | undefined
  readonly #rescueMode: ReturnType<typeof rescueModeOf>

  constructor(deps: RequestRunDeps, options: RequestRunOptions) {
    super()
    this.#deps = deps
    this.#options = options
    this.#startedMs = deps.clock.monotonicMs()
    this.#rescueMode = rescueModeOf(options)
    this.#source = options.source ?? new Failover(deps, options, (backend) => this.#laneFor(backend))
  }

  /** Writes the answer to the sink; the result holds the error if there is no answer. */
  async run(): Promise<RequestRunEnd> {
    const { clock, budget: retryBudget } = this.#deps
    const { sink, totalMs, context, accountId, request } = this.#options
    const { ownStream } = this.#source
    sink.onDisconnect((failure) => this.#onDisconnect(failure))
    this.#deadline = clock.after(totalMs, () => this.#passDeadline())
    if (ownStream !== undefined) ownStream.onProgress = () => this.#writeProgress(ownStream)
    if (context.conversation.stream) this.#watchSilence(ownStream?.silenceMs)
    retryBudget.requestStarted(accountId, request.isRetry)
    try {
      if (this.#clientDisconnected) throw new UpstreamError('cancelled')
      if (this.#aborted !== undefined) throw this.#aborted
      const run = await this.#source.firstContent()
      this.#firstContentMs = Math.round(this.#elapsedMs())
      return { outcome: await (context.conversation.stream ? this.#stream(run) : this.#sendWhole(run)) }
    } catch (error) {
      return await this.#refuse(error)
    } finally {
      retryBudget.requestEnded(accountId)
      this.#deadline.cancel()
      this.#silence?.cancel()
    }
  }

  /** The server is stopping: streams get a failure event, others an error. A run that has not begun calls no backend. */
  abort(): void {
    const { current, retryCount } = this.#source
    this.#aborted = new ServiceError('restarting', { retryCount, retryAfterSeconds: 1 })
    current?.stop(this.#aborted)
  }

  /** Sends a whole answer, which is charged (contract 6.4). */
  async #sendWhole(run: AttemptRun): Promise<RequestOutcome> {
    const { sink, units, persister, admission } = this.#options
    const persisted = persister && (await persistWhole(run, persister))
    const send = (answer: string | Buffer): void => sink.end(persisted ?? answer, run.lane.encoding)
    const flow = (): void => run.flowTo({ write: send, ended: send, broke: () => {} })
    if (sink.stored !== undefined) return this.#storeWhole(flow)
    const outcome = this.#outcome(units, this.#clientDisconnected ? 'client_closed' : undefined)
    if (this.#options.reportsCost === true) this.#costUsd = outcome.cost?.usd
    // Settled first, so that one record holds everything; the delivery mark follows with the first byte.
    this.#settle(outcome, this.#clientDisconnected ? 'none' : 'due')
    if (this.#clientDisconnected) return outcome
    const written = admission.durable()
    if (written !== undefined) await this.#deps.commits.of(written)
    this.#sendFirst(flow)
    return outcome
  }

  /** Like a stream, a stored answer is marked before it is settled: it must be stored in between (contract 39.4). */
  async #storeWhole(flow: () => void): Promise<RequestOutcome> {
    const { units, admission } = this.#options
    const written = admission.durable()
    if (written !== undefined) await this.#deps.commits.of(written)
    if (this.#clientDisconnected) throw new UpstreamError('cancelled')
    if (this.#options.reportsCost === true) this.#costUsd = this.#outcome(units).cost?.usd
    await this.#storeFirst(flow)
    const outcome = this.#outcome(units)
    this.#settle(outcome, 'done')
    return outcome
  }

  /** Delivers a stream, which is charged from its first byte on, even if it breaks later (contract 6.4, 6.5). */
  async #stream(first: AttemptRun): Promise<RequestOutcome> {
    const { sink, units, admission, request } = this.#options
    const written = admission.durable()
    if (written !== undefined) await this.#deps.commits.of(written)
    if (this.#clientDisconnected) throw new UpstreamError('cancelled')
    const { promise: delivered, resolve } = Promise.withResolvers<AnswerDeliveryEnd>()
    const flow = (): void => this.#flow(first, resolve)
    if (sink.stored === undefined) this.#sendFirst(flow)
    else await this.#storeFirst(flow)
    let run = first
    let end = await delivered
    if (this.#rescueMode !== undefined) ({ run, end } = await this.#rescue({ run, end }))
    const errorCode = this.#finishStream(run, end)
    await discardUnwanted(this.#options, end.whole)
    const totalMs = this.#elapsedMs()
    run.reportError(this.#deps.providerErrors, request.id)
    await this.#source.end()
    // The caller already has the whole answer; only its record waits for the usage.
    await run.lateUsage
    const outcome = { ...this.#outcome(units, errorCode), totalMs: Math.round(totalMs) }
    if (this.#options.reportsCost === true && end.whole) sink.end(costComment(outcome.cost))
    this.#settle(outcome, 'done')
    return outcome
  }

  /** Delivers what an attempt sends from now on; `done` is called when it ends. */
  #flow(run: AttemptRun, done: (end: AnswerDeliveryEnd) => void): void {
    const { sink: whole, persister, reportsCost } = this.#options
    const { keepAliveMs } = this.#source.ownStream ?? this.#deps
    const sink = reportsCost === true ? openEnded(whole) : whole
    run.flowTo(persistingFlow(run, new AnswerDelivery(run, sink, this.#deps.clock, keepAliveMs, done), persister))
  }

  /** Lets other backends continue a stream that broke off (contract 40.2). */
  #rescue(delivered: Delivered): Promise<Delivered> {
    const { clock, keepAliveMs, providerErrors } = this.#deps
    const { sink, request } = this.#options
    return rescue(delivered, {
      source: this.#source,
      sink,
      clock,
      keepAliveMs,
      continueWith: (answer, broken) => {
        broken.reportError(providerErrors, request.id)
        this.#continuedLane = (backend) => {
          answer.restart(backend.id)
          return this.#laneWith(backend, { writeAnswer: () => answer }, undefined)
        }
      },
      deliver: (run) => new Promise((resolve) => this.#flow(run, resolve)),
    })
  }

  /** Writes the failure event that explains why the stream broke; returns the error code to record. */
  #finishStream(run: AttemptRun, end: AnswerDeliveryEnd): RequestOutcome['errorCode'] {
    const { sink, request } = this.#options
    if (end.whole) return undefined
    if (end.slowReader) {
      // A client that reads nothing would not read the failure event either.
      this.#clientDisconnected = true
      sink.drop()
    }
    const error = this.#endReason(end.error)
    if (this.#clientDisconnected) return 'client_closed'
    const failure = describeFailure(error, this.#deps.links, request.id, sink.stored !== undefined)
    sink.end(run.lane.failure(failure), run.lane.encoding)
    return error.code
  }

  /** Opens the response and prepares its first bytes, which are sent directly after the delivery mark (contract 6.14). */
  #sendFirst(send: () => void): void {
    this.#options.sink.hold()
    this.#open()
    send()
    this.#deliver()
  }

  /**
   * Like `#sendFirst`, but the first bytes are stored before they are marked as delivered. From then on a retry receives
   * them, so they are delivered and charged even if the mark cannot be written (contract 39.4).
   */
  async #storeFirst(send: () => void): Promise<void> {
    const { sink } = this.#options
    sink.hold()
    this.#open()
    send()
    await sink.stored?.()
    this.#deliver(true)
  }

  #deliver(isStored = false): void {
    const { sink, admission } = this.#options
    try {
      admission.deliver()
    } catch (cause) {
      if (isStored) return sink.release()
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
    if (isReplaced(this.#source.current?.lane, outcome.usage, this.#options))
      this.#deps.log({ event: 'usage_absurd', requestId: this.#options.request.id })
    this.#options.admission.settle(outcome, delivery)
  }

  #open(): void {
    if (this.#answerOpened) return
    this.#answerOpened = true
    const { origin, retryCount } = this.#source
    this.#options.sink.open({
      stream: this.#options.context.conversation.stream,
      upstream: origin?.id,
      model: origin?.model,
      simulated: origin?.simulated ?? false,
      retryCount,
      costUsd: this.#costUsd,
      maxOutputTokens: this.#options.request.spending?.limitOfBudgets,
      signals: this.#options.admission.signals(),
    })
  }

  /** Before any content: keeps the caller's stream alive in its own format (contract 10.1, 10.10). */
  #watchSilence(silentMs = (this.#source.ownStream ?? this.#deps).keepAliveMs): void {
    this.#silence = this.#deps.clock.after(silentMs, () => {
      if (this.#firstContentMs !== undefined || this.#clientDisconnected) return
      this.#openStreamEarly()
      this.#watchSilence()
    })
  }

  #openStreamEarly(): void {
    const { sink, request } = this.#options
    this.#open()
    if (this.#source.ownStream !== undefined) return this.#writeProgress(this.#source.ownStream)
    const comment = this.#deps.relays(request.format).stream?.keepAlive({ sequence: -1, inserted: 0 })
    let text = comment
    if (text === undefined) {
      this.#continuedLane ??= this.#continueResponse()
      text = this.#continuedLane(this.#options.backends[0]!).keepAlive() ?? ''
    }
    sink.write(text, 'utf8')
  }

  /** On an open stream: sends the source's progress, or a keep-alive if there is none. */
  #writeProgress({ lane }: OwnStream): void {
    if (this.#answerOpened && !this.#clientDisconnected) this.#options.sink.write(lane.keepAlive(), lane.encoding)
  }

  /** From here on, one writer writes the whole stream, whichever backend answers (contract 10.12). */
  #continueResponse(): (backend: Backend) => Lane {
    const { context } = this.#options
    const writer = this.#client.writeAnswer(context)
    const lane = (backend: Backend): Lane => this.#laneWith(backend, { writeAnswer: () => writer }, undefined)
    const source = this.#source
    if (!(source instanceof Failover)) return lane
    // Two attempts cannot continue one response.
    source.keepOne()
    source.current?.changeLane(lane(source.current.target))
    return lane
  }

  #laneFor(backend: Backend): Lane {
    return this.#continuedLane?.(backend) ?? this.#openLane(backend)
  }

  #openLane(backend: Backend): Lane {
    // Another backend cannot continue a provider's own IDs and numbers (contract 40.6).
    const mayRelay = this.#rescueMode === undefined
    const relay = mayRelay ? relayRulesFor(backend, this.#options.request, this.#deps.relays) : undefined
    return this.#laneWith(backend, this.#client, relay)
  }

  get #client(): LaneOptions['client'] {
    const { format, held } = this.#options.request
    const client = this.#deps.formats(format)
    return this.#rescueMode === undefined ? client : rescuable(client, this.#rescueMode, held)
  }

  #laneWith(backend: Backend, client: LaneOptions['client'], relay: LaneOptions['relay']): Lane {
    const { reportsModel, request } = this.#options
    const context =
      reportsModel === true ? { ...this.#options.context, servedModel: backend.model } : this.#options.context
    const backendFormat = this.#deps.formats(backend.format)
    const refusesOurCalls = context.report !== undefined
    return openLane({ context, backend, client, backendFormat, relay, refusesOurCalls, held: request.held })
  }

  /** Handles everything that ends the request without a complete answer (contract 6.2, 6.3, 6.6, 6.7, 6.20). */
  async #refuse(thrown: unknown): Promise<RequestRunEnd> {
    const { sink, units, request, backends, persister } = this.#options
    const error = this.#endReason(thrown)
    const isReadable = (await persister?.discard()) === false
    await this.#source.end()
    // Contract 6.21.
    const isDispatched = this.#source.current !== undefined
    // A deadline that the caller set counts as the caller disconnecting.
    const hasLeft = this.#clientDisconnected || (error.code === 'upstream_timeout' && request.timeoutMs !== undefined)
    const outcome = this.#outcome(
      (hasLeft && isDispatched) || isReadable ? units : 0,
      this.#clientDisconnected ? 'client_closed' : error.code,
    )
    this.#settle(outcome, 'none')
    this.#source.current?.stop(new UpstreamError('cancelled'))
    if (this.#clientDisconnected) return { outcome }
    if (!this.#answerOpened) return { outcome, error }
    const failure = describeFailure(error, this.#deps.links, request.id, request.isBackground === true)
    const lane = this.#source.ownStream?.lane ?? this.#laneFor(backends[0]!)
    sink.end(lane.failure(failure), lane.encoding)
    return { outcome }
  }

  #endReason(thrown: unknown): ServiceError {
    if (thrown instanceof ServiceError) return thrown
    const { retryCount, origin = this.#options.backends[0]! } = this.#source
    // After content (contract 7.29); before it, failover throws this error.
    if (isRefusal(thrown)) return contentRejected(thrown, origin, this.#options.request, retryCount)
    if (thrown instanceof UpstreamError) return new ServiceError('upstream_broken', { retryCount })
    const { log } = this.#deps
    // An error that becomes a whole response is logged where that response is written.
    if (this.#answerOpened || this.#clientDisconnected)
      log({ event: 'internal_error', requestId: this.#options.request.id, ...describeBug(thrown) })
    return new ServiceError('internal_error', { cause: thrown })
  }

  #outcome(charged: number, errorCode?: RequestOutcome['errorCode']): RequestOutcome {
    const { current, recordMembers } = this.#source
    const { request, context } = this.#options
    const firstContentMs = this.#firstContentMs
    const hasContent = current !== undefined && firstContentMs !== undefined
    const usage = hasContent ? usageOf(current, context.conversation, request.bytes.length) : undefined
    const { attempts, cost } = billFor(this.#attempts(errorCode, usage))
    const { passedBy, fusions } = recordMembers
    const totalMs = Math.round(this.#elapsedMs())
    const session = this.#options.session?.session.id
    return { charged, attempts, passedBy, usage, cost, errorCode, firstContentMs, totalMs, session, fusions }
  }

  #attempts(errorCode: RequestOutcome['errorCode'], usage: Usage | undefined): readonly Attempt[] {
    const { attempts, current } = this.#source
    // The calls of a fusion are recorded when they end.
    if (this.#options.source !== undefined) return attempts
    const refused = current?.lane.refused === true || errorCode === 'content_rejected'
    return withEnd(attempts, { refused, cache: this.#options.session?.verdict(usage) })
  }

  #elapsedMs(): number {
    return this.#deps.clock.monotonicMs() - this.#startedMs
  }

  #onDisconnect(failure?: ServiceError): void {
    this.#clientDisconnected ||= failure === undefined
    this.#source.current?.stop(failure ?? new UpstreamError('cancelled'))
  }

  #passDeadline(): void {
    const seconds = shownSeconds(this.#options.totalMs)
    const { profile } = this.#options.context.conversation
    const { current, retryCount } = this.#source
    current?.stop(new ServiceError('upstream_timeout', { retryCount, words: { profile, seconds } }))
  }
}
