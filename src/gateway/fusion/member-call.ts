import type { AnswerEvent, Conversation } from '../../domain/conversation.ts'
import { fusionDepthHeaders } from '../../domain/profiles.ts'
import { traceHeader } from '../../domain/trace-header.ts'
import { UpstreamError, type Attempt } from '../../domain/upstream.ts'
import type { AnswerContext } from '../../formats/format.ts'
import { withLimit } from '../budgets/cap-output.ts'
import { inputBound } from '../budgets/input-bound.ts'
import type { CacheContext } from '../cache/cache-context.ts'
import type { AttemptTrace, CallGrant, CallSpending, Backend, HeldBytes, RequestTrace } from '../ports.ts'
import { AnswerEvents } from '../request/answer-events.ts'
import { attemptRecord, logConfigurationFault } from '../request/attempt-end.ts'
import { AttemptRun } from '../request/attempt.ts'
import { translatedWriter, writeFor, type BackendRequestBody } from '../request/backend-request.ts'
import type { FailoverDeps } from '../request/failover-deps.ts'
import { secondAttempt, type SecondAttempt } from '../request/second-attempt.ts'
import { beginAttempt } from '../routing/begin-attempt.ts'
import { contentKindOf } from '../routing/content-kind.ts'
import { promptKindOf } from '../routing/prompt-kind.ts'
import type { ModelAnswer, SubCall } from './engine/ports.ts'

/** One sub-call of a fusion, and where its end is recorded. */
export interface MemberCallOptions {
  readonly deps: FailoverDeps
  /** That of the caller's own answer; its conversation is replaced by the sub-call's. */
  readonly context: AnswerContext
  readonly accountId: string
  readonly backend: Backend
  readonly call: SubCall
  /** How many fusions the call is nested in. */
  readonly depth: number
  readonly record: (attempt: Attempt) => void
  readonly grant: CallGrant
  readonly spending?: CallSpending | undefined
  readonly trace?: RequestTrace | undefined
  /** Counts the bytes of a whole answer. */
  readonly held?: HeldBytes | undefined
  /** What is known about caching for the request that the fusion answers. */
  readonly cache?: CacheContext | undefined
}

/**
 * Calls one backend for a fusion, as `FusionPort.callModel` requires, with an ordinary attempt that is always
 * translated (contract 15.18).
 */
export function callMember(options: MemberCallOptions, signal: AbortSignal): ModelAnswer {
  return options.call.conversation.stream ? readStream(options, signal) : readWhole(options, signal)
}

async function readWhole(options: MemberCallOptions, signal: AbortSignal): Promise<readonly AnswerEvent[]> {
  using call = new MemberCall(options, signal)
  await call.open()
  return (await call.next()) ?? []
}

async function* readStream(options: MemberCallOptions, signal: AbortSignal): AsyncGenerator<readonly AnswerEvent[]> {
  using call = new MemberCall(options, signal)
  await call.open()
  for (let events = await call.next(); events !== undefined; events = await call.next()) yield events
}

/** The attempts of one sub-call. Collects as events what a lane would write for a caller. */
class MemberCall implements Disposable {
  readonly #options: MemberCallOptions
  readonly #signal: AbortSignal
  readonly #conversation: Conversation
  #events: AnswerEvents
  #run: AttemptRun | undefined
  #recorded: AttemptRun | undefined
  #trace: AttemptTrace | undefined
  readonly #aborted = (): void => {
    const cancelled = new UpstreamError('cancelled')
    this.#run?.stop(cancelled)
    // At once, so that the record of a request whose client disconnected includes it.
    this.#record(cancelled)
  }

  constructor(options: MemberCallOptions, signal: AbortSignal) {
    this.#options = options
    this.#signal = signal
    this.#events = new AnswerEvents(options.deps.clock)
    this.#conversation = withLimit(options.call.conversation, options.spending)
  }

  /** Resolves when the first content has arrived; for a whole answer, all of it. @throws UpstreamError, ServiceError */
  async open(): Promise<void> {
    const { deps, backend, cache } = this.#options
    const writer = translatedWriter(this.#conversation, deps, cache)
    const first = writeFor(backend, writer)
    let sentLength = first.body.length
    let sent = bytesOf(first)
    if (this.#signal.aborted) throw new UpstreamError('cancelled')
    this.#signal.addEventListener('abort', this.#aborted, { once: true })
    let again: SecondAttempt | undefined
    for (;;) {
      try {
        await this.#attempt(sent)
        again?.learn()
        return
      } catch (error) {
        const endpoint = sent.backend
        again = secondAttempt(error, { backend, endpoint, sentLength, writer, learned: deps.learned, earlier: again })
        if (again === undefined) throw error
        sentLength = again.written.body.length
        sent = bytesOf(again.written)
      }
    }
  }

  /** The next events that arrived together; undefined at the end. @throws UpstreamError, `timeout` after a silence */
  next(): Promise<readonly AnswerEvent[] | undefined> {
    return this.#events.next()
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener('abort', this.#aborted)
    this.#run?.stop(new UpstreamError('cancelled'))
  }

  async #attempt({ backend, body }: BackendRequestBody): Promise<void> {
    const { deps, context, depth, accountId, grant } = this.#options
    const conversation = this.#conversation
    const { stream } = conversation
    const events = new AnswerEvents(deps.clock)
    const lane = events.laneOf({
      context: { ...context, conversation },
      backend,
      backendFormat: deps.formats(backend.format),
      refusesOurCalls: true,
      held: this.#options.held,
    })
    const caller = { accountId, contentKind: () => contentKindOf(conversation) }
    const observer = beginAttempt(deps, {
      backend,
      caller,
      kind: promptKindOf(body.length, conversation),
      isSecond: false,
    })
    const run = new AttemptRun(backend, { lane, stream, clock: deps.clock, observer, conversation })
    this.#events = events
    this.#run = run
    this.#trace = this.#options.trace?.attempt(backend)
    try {
      const traceparent = this.#trace?.traceparent
      const added = fusionDepthHeaders(depth)
      const headers = traceparent === undefined ? added : [...(added ?? []), traceHeader, traceparent]
      const sentBytes = Buffer.byteLength(body)
      const granted: CallGrant = (target, _, bill) => grant(target, inputBound(sentBytes, conversation), bill)
      await run.open({ body, stream, requestId: context.requestId, headers }, granted)
    } catch (error) {
      this.#record(error)
      events.fail(error)
      run.reportError(deps.providerErrors, context.requestId)
      logConfigurationFault(deps.log, { backend: backend.id, requestId: context.requestId }, error)
      throw error
    }
    events.flowFrom(run, (error) => {
      run.reportError(deps.providerErrors, context.requestId)
      this.#record(error)
    })
  }

  /** Each attempt is recorded once. */
  #record(error?: unknown): void {
    const run = this.#run
    if (run === undefined || run === this.#recorded) return
    this.#recorded = run
    this.#options.spending?.ended(run.bill, error)
    const record = attemptRecord(run, this.#options.deps.clock.monotonicMs(), error)
    this.#options.record(record)
    this.#trace?.ended(record)
  }
}

/** A long-running call holds its body as bytes: half the memory of text, and outside the heap. */
function bytesOf({ backend, body }: BackendRequestBody): BackendRequestBody {
  return { backend, body: typeof body === 'string' ? Buffer.from(body) : body }
}
