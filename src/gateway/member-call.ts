import type { AnswerEvent } from '../domain/conversation.ts'
import { fusionDepthHeader } from '../domain/profiles.ts'
import { UpstreamError, type Attempt } from '../domain/upstream.ts'
import type { AnswerContext } from '../formats/format.ts'
import { unsealConversation } from '../formats/sealed.ts'
import { AnswerEvents } from './answer-events.ts'
import { AttemptRun } from './attempt.ts'
import { attemptOf, logRejectedCredentials } from './attempt-end.ts'
import type { FailoverParts } from './failover.ts'
import type { ModelAnswer, SubCall } from './fusion/ports.ts'
import type { Backend } from './ports.ts'
import { contentKindOf } from './routing/content-kind.ts'

/** One sub-call of a fusion, and where its end is noted. */
export interface MemberCallOf {
  readonly parts: FailoverParts
  /** That of the caller's own answer; its conversation is replaced by the sub-call's. */
  readonly context: AnswerContext
  readonly accountId: string
  readonly backend: Backend
  readonly call: SubCall
  /** How many fusions the call is inside of. */
  readonly depth: number
  readonly record: (attempt: Attempt) => void
}

/** Asks one backend for a part of a fusion, as `FusionPort.callModel` wants it: by an attempt like any other. */
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

/** The attempt behind one sub-call. What the lane would write for a caller is gathered as events instead. */
class MemberCall implements Disposable {
  readonly #of: MemberCallOf
  readonly #signal: AbortSignal
  readonly #run: AttemptRun
  readonly #events: AnswerEvents
  #isRecorded = false
  readonly #cut = (): void => {
    this.#run.stop(new UpstreamError('cancelled'))
    // At once, so that the record of a caller that left has it.
    this.#record(new UpstreamError('cancelled'))
  }

  constructor(of: MemberCallOf, signal: AbortSignal) {
    this.#of = of
    this.#signal = signal
    const { parts, backend, call } = of
    this.#events = new AnswerEvents(parts.clock)
    const lane = this.#events.laneOf({
      context: { ...of.context, conversation: call.conversation },
      backend,
      backendFormat: parts.formats(backend.format),
      refusesOurCalls: true,
    })
    const asker = { accountId: of.accountId, contentKind: () => contentKindOf(call.conversation) }
    const observer = parts.breakers.begin(backend.id, asker)
    this.#run = new AttemptRun(backend, lane, call.conversation.stream, parts.clock, observer)
  }

  /** Resolves when the first content is there, of a whole answer all of it. @throws UpstreamError, ServiceError */
  async open(): Promise<void> {
    const { parts, backend, call, context, depth } = this.#of
    const { formats } = parts
    const { stream } = call.conversation
    const target = { model: backend.model, stream, dialect: backend.dialect }
    const conversation = unsealConversation(call.conversation, backend.issuer)
    const body = Buffer.from(JSON.stringify(formats(backend.format).writeRequest(conversation, target)))
    if (this.#signal.aborted) throw new UpstreamError('cancelled')
    this.#signal.addEventListener('abort', this.#cut, { once: true })
    try {
      const headers = [fusionDepthHeader, String(depth)]
      await this.#run.open({ body, stream, requestId: context.requestId, headers })
    } catch (error) {
      this.#record(error)
      this.#events.fail(error)
      this.#run.tellError(parts.providerErrors, context.requestId)
      logRejectedCredentials(parts.log, { backend: backend.id, requestId: context.requestId }, error)
      throw error
    }
    this.#events.flowFrom(this.#run, (error) => this.#record(error))
  }

  /** What arrived together next; undefined behind the last. @throws UpstreamError, `timeout` after a silence */
  next(): Promise<readonly AnswerEvent[] | undefined> {
    return this.#events.next()
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener('abort', this.#cut)
    this.#run.stop(new UpstreamError('cancelled'))
  }

  #record(error?: unknown): void {
    if (this.#isRecorded) return
    this.#isRecorded = true
    this.#of.record(attemptOf(this.#run, this.#of.parts.clock.monotonicMs(), error))
  }
}
