import type { AnswerEvent } from '../domain/conversation.ts'
import { fusionDepthHeader } from '../domain/profiles.ts'
import { UpstreamError, type Attempt } from '../domain/upstream.ts'
import type { AnswerContext } from '../formats/format.ts'
import { AnswerEvents } from './answer-events.ts'
import { AttemptRun } from './attempt.ts'
import { attemptOf, logConfigurationFault } from './attempt-end.ts'
import { translatedWriter, writeFor, type WrittenBody } from './backend-body.ts'
import type { CallGrant } from './call-grant.ts'
import type { FailoverParts } from './failover.ts'
import type { ModelAnswer, SubCall } from './fusion/ports.ts'
import type { Backend, HeldBytes } from './ports.ts'
import { contentKindOf } from './routing/content-kind.ts'
import { secondTry, type SecondTry } from './second-try.ts'

/** One sub-call of a fusion, and where its end is recorded. */
export interface MemberCallOf {
  readonly parts: FailoverParts
  /** That of the caller's own answer; its conversation is replaced by the sub-call's. */
  readonly context: AnswerContext
  readonly accountId: string
  readonly backend: Backend
  readonly call: SubCall
  /** How many fusions the call is nested in. */
  readonly depth: number
  readonly record: (attempt: Attempt) => void
  readonly grant: CallGrant
  /** Counts the bytes of a whole answer. */
  readonly held?: HeldBytes | undefined
}

/** Calls one backend for a fusion, as `FusionPort.callModel` requires, with an ordinary attempt. */
export function callMember(of: MemberCallOf, signal: AbortSignal): ModelAnswer {
  return of.call.conversation.stream ? readStream(of, signal) : readWhole(of, signal)
}

async function readWhole(of: MemberCallOf, signal: AbortSignal): Promise<readonly AnswerEvent[]> {
  using call = new MemberCall(of, signal)
  await call.open()
  return (await call.next()) ?? []
}

async function* readStream(of: MemberCallOf, signal: AbortSignal): AsyncGenerator<readonly AnswerEvent[]> {
  using call = new MemberCall(of, signal)
  await call.open()
  for (let events = await call.next(); events !== undefined; events = await call.next()) yield events
}

/** The attempts of one sub-call. Collects as events what a lane would write for a caller. */
class MemberCall implements Disposable {
  readonly #of: MemberCallOf
  readonly #signal: AbortSignal
  #events: AnswerEvents
  #run: AttemptRun | undefined
  #recorded: AttemptRun | undefined
  readonly #cut = (): void => {
    const cancelled = new UpstreamError('cancelled')
    this.#run?.stop(cancelled)
    // At once, so that the record of a request whose client disconnected includes it.
    this.#record(cancelled)
  }

  constructor(of: MemberCallOf, signal: AbortSignal) {
    this.#of = of
    this.#signal = signal
    this.#events = new AnswerEvents(of.parts.clock)
  }

  /** Resolves when the first content has arrived; for a whole answer, all of it. @throws UpstreamError, ServiceError */
  async open(): Promise<void> {
    const { parts, backend, call } = this.#of
    const writer = translatedWriter(call.conversation, parts)
    const first = writeFor(backend, writer)
    let sentLength = first.body.length
    let sent = bytesOf(first)
    if (this.#signal.aborted) throw new UpstreamError('cancelled')
    this.#signal.addEventListener('abort', this.#cut, { once: true })
    let again: SecondTry | undefined
    for (;;) {
      try {
        await this.#attempt(sent)
        again?.learn()
        return
      } catch (error) {
        const endpoint = sent.backend
        again = secondTry(error, { backend, endpoint, sentLength, writer, learned: parts.learned, earlier: again })
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
    this.#signal.removeEventListener('abort', this.#cut)
    this.#run?.stop(new UpstreamError('cancelled'))
  }

  async #attempt({ backend, body }: WrittenBody): Promise<void> {
    const { parts, context, call, depth, accountId } = this.#of
    const { stream } = call.conversation
    const events = new AnswerEvents(parts.clock)
    const lane = events.laneOf({
      context: { ...context, conversation: call.conversation },
      backend,
      backendFormat: parts.formats(backend.format),
      refusesOurCalls: true,
      held: this.#of.held,
    })
    const asker = { accountId, contentKind: () => contentKindOf(call.conversation) }
    const run = new AttemptRun(backend, lane, stream, parts.clock, parts.breakers.begin(backend.id, asker))
    this.#events = events
    this.#run = run
    try {
      const headers = [fusionDepthHeader, String(depth)]
      await run.open({ body, stream, requestId: context.requestId, headers }, this.#of.grant)
    } catch (error) {
      this.#record(error)
      events.fail(error)
      run.tellError(parts.providerErrors, context.requestId)
      logConfigurationFault(parts.log, { backend: backend.id, requestId: context.requestId }, error)
      throw error
    }
    events.flowFrom(run, (error) => {
      run.tellError(parts.providerErrors, context.requestId)
      this.#record(error)
    })
  }

  /** Each attempt is recorded once. */
  #record(error?: unknown): void {
    const run = this.#run
    if (run === undefined || run === this.#recorded) return
    this.#recorded = run
    this.#of.record(attemptOf(run, this.#of.parts.clock.monotonicMs(), error))
  }
}

/** A long-running call holds its body as bytes: half the memory of text, and outside the heap. */
function bytesOf({ backend, body }: WrittenBody): WrittenBody {
  return { backend, body: typeof body === 'string' ? Buffer.from(body) : body }
}
