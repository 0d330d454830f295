import type { AnswerEvent, Conversation, Usage } from '../../../domain/conversation.ts'
import { completeUsage } from '../../../domain/estimate-tokens.ts'
import { fusionDepthHeaders } from '../../../domain/profiles.ts'
import { UpstreamError } from '../../../domain/upstream.ts'
import { withLimit } from '../../budgets/cap-output.ts'
import { inputBound } from '../../budgets/input-bound.ts'
import type { Backend, CallGrant } from '../../ports.ts'
import { AnswerEvents } from '../../request/answer-events.ts'
import { attemptRecord } from '../../request/attempt-end.ts'
import type { AttemptRun } from '../../request/attempt.ts'
import { translatedOnly } from '../../request/backend-request.ts'
import { Failover } from '../../request/failover.ts'
import { capableFirst } from '../../routing/capable-backends.ts'
import type { FusionSession } from '../fused-answer.ts'

/** One call of the calling model: tries one backend after another until one starts to answer (contract 7). */
export class CallingModelCall implements Disposable {
  readonly #session: FusionSession
  readonly #conversation: Conversation
  readonly #failover: Failover
  readonly #startedMs: number
  #events: AnswerEvents
  #run: AttemptRun | undefined
  #usage: Usage | undefined
  #recorded = 0
  readonly #aborted = (): void => {
    const { current, attempts } = this.#failover
    const isWaiting = this.#run === undefined && current !== undefined
    const cancelled = new UpstreamError('cancelled')
    current?.stop(cancelled)
    this.#record()
    // At once, so that the record of a request whose client disconnected includes it.
    if (isWaiting && attempts.length === this.#recorded)
      this.#session.record(attemptRecord(current, this.#nowMs, cancelled))
    this.#recorded = Number.POSITIVE_INFINITY
  }

  /**
   * `hasFindings`: the model is shown a fusion's findings, so a second router at the backend must not start another
   * fusion.
   */
  constructor(session: FusionSession, asked: Conversation, backends: readonly Backend[], hasFindings: boolean) {
    const { deps, request, context, accountId, port, totalMs, turn } = session
    const conversation = withLimit(asked, request.spending)
    this.#session = session
    this.#conversation = conversation
    this.#startedMs = port.clock.monotonicMs()
    this.#events = new AnswerEvents(port.clock)
    const fusionDepth = hasFindings ? (request.fusionDepth ?? 0) + 1 : request.fusionDepth
    const sent = { ...request, passedHeaders: undefined, addedHeaders: fusionDepthHeaders(fusionDepth) }
    const able = capableFirst(backends, conversation, deps.learned)
    const shared = { accountId, conversation, backends: able, written: undefined, totalMs, session: turn }
    // What it reads has more than the caller sent: findings, and its calls of the tool.
    const grantFor = (bytes: number): CallGrant => {
      return (target, _, bill) => request.grant(target, inputBound(bytes, conversation, request.body), bill)
    }
    const failoverOptions = { ...shared, request: sent, grantFor }
    this.#failover = new Failover({ ...deps, relays: translatedOnly }, failoverOptions, (backend) => {
      // Events of a failed backend are not part of the next one's answer.
      this.#events = new AnswerEvents(port.clock)
      return this.#events.laneOf({
        context: { ...context, conversation },
        backend,
        backendFormat: deps.formats(backend.format),
      })
    })
  }

  /** How many backends failed before the one that answers. */
  get retryCount(): number {
    return this.#failover.retryCount
  }

  /** Milliseconds since the call started. */
  get ms(): number {
    return Math.round(this.#nowMs - this.#startedMs)
  }

  /** The usage of the reply, estimated if the backend reported none. */
  get usage(): Usage | undefined {
    const { lane } = this.#run ?? {}
    const usage = this.#usage ?? lane?.usage
    return lane === undefined ? usage : completeUsage(usage, this.#conversation, lane.estimatedTokens)
  }

  /**
   * Resolves with the answering backend when the first content has arrived.
   * @throws ServiceError if none answers, UpstreamError `cancelled`
   */
  async open(): Promise<Backend> {
    const { signal } = this.#session
    if (signal.aborted) throw new UpstreamError('cancelled')
    signal.addEventListener('abort', this.#aborted, { once: true })
    try {
      const run = await this.#failover.firstContent()
      this.#run = run
      this.#events.flowFrom(run, () => {})
      return run.target
    } finally {
      this.#record()
    }
  }

  /**
   * The next events that arrived together; undefined at the end.
   * @throws UpstreamError, `timeout` after a silence (contract 9.5)
   */
  async next(): Promise<readonly AnswerEvent[] | undefined> {
    const events = await this.#events.next()
    for (const event of events ?? []) if (event.type === 'usage') this.#usage = event.usage
    return events
  }

  [Symbol.dispose](): void {
    this.#session.signal.removeEventListener('abort', this.#aborted)
    this.#failover.current?.stop(new UpstreamError('cancelled'))
  }

  get #nowMs(): number {
    return this.#session.port.clock.monotonicMs()
  }

  #record(): void {
    const { attempts } = this.#failover
    for (const attempt of attempts.slice(this.#recorded)) this.#session.record(attempt)
    this.#recorded = Math.max(this.#recorded, attempts.length)
  }
}
