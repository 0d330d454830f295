import { createHash } from 'node:crypto'
import type { AnswerEvent, Usage } from '../domain/conversation.ts'
import { estimateUsage, outputBytes, tokensOfBytes } from '../domain/estimate-tokens.ts'
import type { CallRole } from '../domain/fusion-record.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { CostTracker } from '../gateway/fusion/engine/cost-tracker.ts'
import type { FusionMember, ModelAnswer, SubCall } from '../gateway/fusion/engine/ports.ts'
import { EvaluationStop, type AnsweredCall, type EvalMember, type EvalPort, type Kept } from './ports.ts'

const maxTries = 4
const firstWaitMs = 1_000
const longestWaitMs = 20_000
/**
 * After this many failures in a row, each after its retries, a member cannot be measured and the evaluation stops
 * (contract 34.5).
 */
const maxFailures = 3
/**
 * The same, including calls that were aborted because they took too long: a slow member may miss some (contract 34.5).
 */
const maxMisses = 8
/** Temporary failures, which are retried. */
const passing: ReadonlySet<string> = new Set(['rate_limited', 'server_error', 'unreachable', 'reset', 'broken'])

export interface RecorderOptions {
  readonly port: EvalPort
  readonly members: readonly EvalMember[]
  readonly kept: Kept
  /** The limit in US dollars for the whole evaluation, including earlier runs (contract 34.4). */
  readonly maxUsd: number
  /** Maximum number of calls in this run, including retries. */
  readonly maxCalls: number
  /** Aborted to end the evaluation. Running calls are closed. */
  readonly signal: AbortSignal
}

interface PendingCall {
  readonly key: string
  readonly asked: FusionMember
  readonly call: SubCall
  readonly signal: AbortSignal
  readonly progress: { hasBegun: boolean }
}

/**
 * One call of an arm: its duration and cost when it was made, possibly for another arm. A failed call is free here; its
 * possible cost is in the total.
 */
export interface ArmCall {
  readonly role: CallRole
  readonly member: string
  readonly ms: number
  readonly usd: number
}

/** Replaces a model's answer; undefined to call the model. A rejected promise fails the call. */
export type Interception = (member: FusionMember, call: SubCall) => readonly AnswerEvent[] | UpstreamError | undefined

/**
 * Makes every call once. If another arm or an earlier run made the same call, its answer is replayed byte for byte.
 * Before a call, its worst-case cost is reserved from the remaining money.
 */
export class Recorder {
  readonly #options: RecorderOptions
  readonly #answered: Map<string, AnsweredCall>
  readonly #failed = new Map<string, { readonly error: UpstreamError | EvaluationStop; readonly ms: number }>()
  readonly #members: ReadonlyMap<string, EvalMember>
  readonly #costs: CostTracker
  /** Failed calls of each member since its last answer. */
  readonly #failures = new Map<string, { failures: number; misses: number }>()
  /** Running calls, and what to resolve when the next of them ends. */
  #underWay = 0
  #ended = Promise.withResolvers<void>()

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#answered = new Map(options.kept.answered)
    this.#members = new Map(options.members.map((member) => [member.id, member]))
    this.#costs = new CostTracker(options.maxUsd - options.kept.spentUsd)
  }

  /** US dollars, including earlier runs. */
  get spentUsd(): number {
    return this.#options.kept.spentUsd + (this.#costs.costUsd ?? 0)
  }

  /** Calls that were actually made in this run. */
  get calls(): number {
    return this.#costs.records.length
  }

  /** The calls of one arm for one question. */
  trace(intercept: Interception = () => undefined): Trace {
    return new Trace(this, intercept)
  }

  /** How long a failed call was waited for; 0 if it did not fail. */
  failedAfterMs(key: string): number {
    return this.#failed.get(key)?.ms ?? 0
  }

  /** @throws UpstreamError as the backend does; EvaluationStop if the evaluation cannot continue */
  async *ask(
    key: string,
    member: FusionMember,
    call: SubCall,
    signal: AbortSignal,
  ): AsyncGenerator<readonly AnswerEvent[], AnsweredCall> {
    const before = this.#answered.get(key)
    if (before !== undefined) {
      yield before.events
      return before
    }
    const failure = this.#failed.get(key)
    if (failure !== undefined) throw failure.error
    const startedMs = this.#options.port.clock.monotonicMs()
    const progress = { hasBegun: false }
    for (let tries = 1; ; tries++) {
      try {
        return yield* this.#askOnce({ key, asked: member, call, signal, progress })
      } catch (error) {
        if (!(error instanceof UpstreamError) || error.outcome === 'cancelled') throw error
        if (error.outcome === 'rejected_credentials') throw new EvaluationStop('credentials', member.id)
        // An answer that was partly passed on cannot be restarted.
        if (tries === maxTries || progress.hasBegun || !passing.has(error.outcome)) {
          this.#failed.set(key, { error, ms: Math.round(this.#options.port.clock.monotonicMs() - startedMs) })
          throw this.#stopAfter(member.id, error, 'failed') ?? error
        }
        const waitMs = Math.min(longestWaitMs, error.retryAfterMs ?? firstWaitMs * 2 ** (tries - 1))
        await this.#wait(waitMs, signal)
      }
    }
  }

  async *#askOnce({
    key,
    asked,
    call,
    signal,
    progress,
  }: PendingCall): AsyncGenerator<readonly AnswerEvent[], AnsweredCall> {
    const { port, signal: ending } = this.#options
    if (ending.aborted) throw new EvaluationStop('asked')
    const member = this.#members.get(asked.id)!
    const worstUsd = this.#costs.worstUsd(member, call.conversation)
    const reservation = await this.#reserve(call.role, member, worstUsd, signal)
    port.journal.began(key, worstUsd)
    const startedMs = port.clock.monotonicMs()
    const elapsedMs = (): number => Math.round(port.clock.monotonicMs() - startedMs)
    const events: AnswerEvent[] = []
    let status: Parameters<CostTracker['settle']>[1]['status'] = 'cut'
    try {
      for await (const batch of batchesOf(port.callModel(member, call, AbortSignal.any([signal, ending])))) {
        for (const event of batch) if (isKept(event)) events.push(event)
        progress.hasBegun = true
        yield batch
      }
      status = events.some(({ type }) => type === 'finish') ? 'answered' : 'broken'
    } catch (error) {
      if (error instanceof UpstreamError) status = error.outcome
      if (ending.aborted) throw new EvaluationStop('asked')
      throw error
    } finally {
      const usage = status === 'answered' ? usageOf(events, call) : undefined
      const beforeUsd = this.#costs.costUsd ?? 0
      this.#costs.settle(reservation, { status, ms: elapsedMs(), ...(usage === undefined ? {} : { usage }) })
      this.#underWay -= 1
      this.#ended.resolve()
      this.#ended = Promise.withResolvers()
      if (status !== 'answered') port.journal.failed(key, (this.#costs.costUsd ?? 0) - beforeUsd)
      // Fusion stopped waiting for it, and would again. Other arms see the same.
      if ((status === 'cut' || status === 'cancelled') && !ending.aborted) this.#noteAborted(key, asked.id, elapsedMs())
    }
    if (status === 'broken') throw new UpstreamError('broken')
    const usd = this.#costs.records.at(-1)?.costUsd ?? worstUsd
    const answered = { key, events, ms: elapsedMs(), usd }
    this.#answered.set(key, answered)
    this.#failures.delete(asked.id)
    port.journal.answered(answered)
    return answered
  }

  #noteAborted(key: string, memberId: string, ms: number): void {
    const error = new UpstreamError('timeout')
    this.#failed.set(key, { error: this.#stopAfter(memberId, error, 'cut') ?? error, ms })
  }

  /** Counts a failed call. Returns the reason to end the evaluation if its member failed too often in a row. */
  #stopAfter(memberId: string, { outcome }: UpstreamError, how: 'failed' | 'cut'): EvaluationStop | undefined {
    // The member answers but this question is too long for it, which is a valid result.
    if (outcome === 'context_too_long') return undefined
    const count = this.#failures.get(memberId) ?? { failures: 0, misses: 0 }
    if (how === 'failed') count.failures += 1
    count.misses += 1
    this.#failures.set(memberId, count)
    if (count.failures < maxFailures && count.misses < maxMisses) return undefined
    return new EvaluationStop('unanswered', memberId, outcome)
  }

  /**
   * Reserves the worst-case cost of a call. If other calls have reserved the money, waits until they end. @throws
   * EvaluationStop
   */
  async #reserve(
    role: CallRole,
    member: EvalMember,
    worstUsd: number,
    signal: AbortSignal,
  ): Promise<ReturnType<CostTracker['reserve']> & object> {
    if (this.calls + this.#underWay >= this.#options.maxCalls) throw new EvaluationStop('calls')
    for (;;) {
      const reservation = this.#costs.reserve(role, member, worstUsd)
      if (reservation !== undefined) {
        this.#underWay += 1
        return reservation
      }
      if (this.#underWay === 0) throw new EvaluationStop('money')
      await this.#wait(longestWaitMs, signal, this.#ended.promise)
      if (this.#options.signal.aborted) throw new EvaluationStop('asked')
      // Fusion stopped waiting because no money was left, which is not the member's fault.
      if (signal.aborted) throw new EvaluationStop('money')
    }
  }

  /** Ends after a delay, when a signal is aborted, or when `event` resolves. */
  #wait(ms: number, signal: AbortSignal, event?: Promise<void>): Promise<void> {
    const over = AbortSignal.any([signal, this.#options.signal])
    return new Promise((resolve) => {
      const done = (): void => {
        timer.cancel()
        over.removeEventListener('abort', done)
        resolve()
      }
      const timer = this.#options.port.clock.after(ms, done)
      void event?.then(done)
      if (over.aborted) done()
      else over.addEventListener('abort', done, { once: true })
    })
  }
}

/** The calls of one arm for one question, made or replayed. */
export class Trace {
  readonly calls: ArmCall[] = []
  /** Why the evaluation ends, if a call found a reason. */
  stop: EvaluationStop | undefined
  readonly #recorder: Recorder
  readonly #intercept: Interception
  /** How often the same request was made: samples of one request are different calls. */
  readonly #asked = new Map<string, number>()

  constructor(recorder: Recorder, intercept: Interception) {
    this.#recorder = recorder
    this.#intercept = intercept
  }

  /** Same as `FusionPort.callModel`. */
  callModel(member: FusionMember, call: SubCall, signal: AbortSignal): ModelAnswer {
    const said = this.#intercept(member, call)
    const answer = said === undefined ? this.#ask(member, call, signal) : say(said)
    return call.conversation.stream ? answer : collect(answer)
  }

  async *#ask(member: FusionMember, call: SubCall, signal: AbortSignal): AsyncGenerator<readonly AnswerEvent[]> {
    const asked = digestOf(member.id, call)
    const nth = this.#asked.get(asked) ?? 0
    this.#asked.set(asked, nth + 1)
    const key = `${asked}.${nth}`
    const made = { role: call.role, member: member.id }
    try {
      const { ms, usd } = yield* this.#recorder.ask(key, member, call, signal)
      this.calls.push({ ...made, ms, usd })
    } catch (error) {
      if (error instanceof EvaluationStop) this.stop ??= error
      else this.calls.push({ ...made, ms: this.#recorder.failedAfterMs(key), usd: 0 })
      throw error
    }
  }
}

/** Identifies a request to a member. Streaming is not part of it, because it does not change the question. */
function digestOf(memberId: string, { conversation }: SubCall): string {
  const { stream: _, profile: __, ...asked } = conversation
  return createHash('sha256')
    .update(`${memberId}\n${JSON.stringify(asked)}`)
    .digest('base64url')
    .slice(0, 24)
}

/** The usage that the backend reported, otherwise an estimate from the received content. */
function usageOf(events: readonly AnswerEvent[], { conversation }: SubCall): Usage {
  const counted = events.findLast((event) => event.type === 'usage')?.usage
  if (counted !== undefined) return counted
  const bytes = events.reduce((sum, event) => sum + outputBytes(event), 0)
  return estimateUsage(conversation, tokensOfBytes(bytes))
}

function isKept({ type }: AnswerEvent): boolean {
  return type === 'text' || type === 'refusal' || type === 'usage' || type === 'finish'
}

async function* say(said: readonly AnswerEvent[] | UpstreamError): AsyncGenerator<readonly AnswerEvent[]> {
  if (said instanceof UpstreamError) throw said
  yield said
}

async function* batchesOf(answer: ModelAnswer): AsyncGenerator<readonly AnswerEvent[]> {
  if (answer instanceof Promise) yield await answer
  else yield* answer
}

async function collect(batches: AsyncIterable<readonly AnswerEvent[]>): Promise<readonly AnswerEvent[]> {
  const all: AnswerEvent[] = []
  for await (const events of batches) for (const event of events) all.push(event)
  return all
}
