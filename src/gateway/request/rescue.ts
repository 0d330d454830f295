import { type ErrorCode, ServiceError } from '../../domain/errors.ts'
import type { RescueMode } from '../../domain/routing-policy.ts'
import { UpstreamError, type Attempt } from '../../domain/upstream.ts'
import type { ClientFormatId } from '../../formats/format.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { asError } from '../../runtime/describe-bug.ts'
import type { Lane, LaneOptions } from '../lanes/lane.ts'
import { TranslationLane } from '../lanes/translation-lane.ts'
import type { AnswerSink, HeldBytes } from '../ports.ts'
import type { AnswerDeliveryEnd } from './answer-delivery.ts'
import type { AnswerSource } from './answer-source.ts'
import { attemptRecord } from './attempt-end.ts'
import type { AttemptRun } from './attempt.ts'
import { Failover } from './failover.ts'
import type { RequestRunOptions } from './request-run-options.ts'
import { RescuableAnswer } from './rescuable-answer.ts'

/**
 * Errors of the next attempt alone. They say that nothing was answered or counted, or that the content must be changed, which is
 * false for a stream that another backend began.
 */
const attemptErrors: ReadonlySet<ErrorCode> = new Set(['record_unavailable', 'auth_unavailable', 'content_rejected'])

const rescuedFormats: ReadonlySet<ClientFormatId> = new Set(['openai-chat', 'openai-responses', 'anthropic-messages'])

/**
 * How a stream may be rescued; undefined if it may not. Answers that another backend cannot continue as text, and
 * answers whose translation would lose something, are never rescued (contract 40.3).
 */
export function rescueModeOf(options: RequestRunOptions): Exclude<RescueMode, 'never'> | undefined {
  const { routing, request, backends, source, context } = options
  const { rescue = 'never' } = routing
  if (rescue === 'never' || source !== undefined || backends.length < 2) return undefined
  const { stream, tools, sampling, hints, outputFormat } = context.conversation
  if (!stream || !rescuedFormats.has(request.format)) return undefined
  if ((sampling.choices ?? 1) > 1 || sampling.logprobs === true) return undefined
  if (tools.some(({ type }) => type === 'hosted') || (hints.untranslatable?.length ?? 0) > 0) return undefined
  // A note would break JSON.
  return outputFormat === undefined || outputFormat.type === 'text' ? rescue : 'verified'
}

/** Writes a client's format so that another backend can continue the answer. */
export function rescuable(
  client: LaneOptions['client'],
  mode: RescueMode,
  held: HeldBytes | undefined,
): LaneOptions['client'] {
  return { writeAnswer: (context) => new RescuableAnswer(client.writeAnswer(context), mode, held) }
}

interface RescueDeps {
  readonly source: AnswerSource
  readonly sink: AnswerSink
  readonly clock: Clock
  readonly keepAliveMs: number
  /** Lets the lanes of all further attempts continue this answer. */
  readonly continueWith: (answer: RescuableAnswer, broken: AttemptRun) => void
  /** Delivers what an attempt sends, until it ends. */
  readonly deliver: (run: AttemptRun) => Promise<AnswerDeliveryEnd>
}

/** A delivery that ended, and the attempt that it was of. */
export interface Delivered {
  readonly run: AttemptRun
  readonly end: AnswerDeliveryEnd
}

/** Lets other backends continue a stream that broke off after content (contract 40.2). */
export async function rescue(broken: Delivered, deps: RescueDeps): Promise<Delivered> {
  const { source } = deps
  let { run, end } = broken
  for (;;) {
    const answer = answerOf(run.lane)
    if (answer === undefined || !(source instanceof Failover)) return { run, end }
    if (answer.seam !== undefined) amendLast(source.attempts, { rescued: answer.seam })
    // The backend did nothing wrong: it was stopped.
    if (answer.differs) amendLast(source.attempts, { outcome: 'cancelled' })
    if (!answer.mayContinue || end.whole || end.slowReader || !isRescuable(end.error)) return { run, end }
    deps.continueWith(answer, run)
    try {
      run = await nextAttempt(source, { run, error: end.error }, deps)
    } catch (error) {
      return { run, end: { whole: false, error: asError(error), slowReader: false } }
    }
    end = await deps.deliver(run)
  }
}

interface BrokenAttempt {
  readonly run: AttemptRun
  readonly error: UpstreamError
}

/**
 * Asks the next backend, while the client gets keep-alives.
 * @throws `error` if no other backend answers (contract 40.2), and errors that end the request at once
 */
async function nextAttempt(source: Failover, { run, error }: BrokenAttempt, deps: RescueDeps): Promise<AttemptRun> {
  const { sink, clock, keepAliveMs } = deps
  const { attempts, current, trace } = source
  const answered = attempts.at(-1)!
  const asked = attempts.length
  amendLast(attempts, attemptRecord(run, clock.monotonicMs(), error))
  const broken = attempts.at(-1)!
  let timer: Timer
  const keepAlive = (): void => {
    sink.write(run.lane.keepAlive() ?? '', run.lane.encoding)
    timer = clock.after(keepAliveMs, keepAlive)
  }
  timer = clock.after(keepAliveMs, keepAlive)
  try {
    source.leaveOrigin()
    return await source.firstContent()
  } catch (failure) {
    source.current = current
    throw source.isExhausted || isOfAttempt(failure) ? error : failure
  } finally {
    timer.cancel()
    // If no other backend was asked, the record is that of a request that is not rescued.
    if (attempts.length === asked) attempts[asked - 1] = answered
    else trace?.ended(broken)
  }
}

function isOfAttempt(failure: unknown): boolean {
  return failure instanceof ServiceError && attemptErrors.has(failure.code)
}

function amendLast(attempts: Attempt[], changes: Partial<Attempt>): void {
  attempts.push({ ...attempts.pop()!, ...changes })
}

function answerOf(lane: Lane): RescuableAnswer | undefined {
  return lane instanceof TranslationLane && lane.writer instanceof RescuableAnswer ? lane.writer : undefined
}

/** Whether the backend broke the answer off: not the client, a limit, this service, or a refusal of the content. */
function isRescuable(error: Error): error is UpstreamError {
  return error instanceof UpstreamError && error.blames === 'backend'
}
