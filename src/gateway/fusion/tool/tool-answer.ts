import type { Conversation, FinishReason, Turn } from '../../../domain/conversation.ts'
import type { FusionMemo } from '../../../domain/fusion-memo.ts'
import { isRefusal, UpstreamError } from '../../../domain/upstream.ts'
import type { Backend } from '../../ports.ts'
import { contentKindOf } from '../../routing/content-kind.ts'
import { CostTracker } from '../engine/cost-tracker.ts'
import { notesFrom } from '../engine/deliberate.ts'
import { memoOf } from '../engine/digest.ts'
import type { Fence } from '../engine/fence.ts'
import { mergedPrompt } from '../engine/prompts.ts'
import type { FusionEnd, FusionSession } from '../fused-answer.ts'
import { membersOf } from '../members.ts'
import type { CallingModelAnswer } from './calling-model-answer.ts'
import { CallingModel, type ModelReply } from './calling-model.ts'
import type { DeferredEntry, DeferredQuestions } from './deferred-questions.ts'
import { failureText, fenceOf, findingsText, withFindings, withMemo } from './findings.ts'
import { callingModelRequest, type ToolPresence } from './presented-tool.ts'
import { joinCalls, maxQuestions, readCall } from './questions.ts'
import type { FusionTool } from './read-tool.ts'
import { ToolRunReporter, type RunReason } from './tool-run-reporter.ts'
import { ToolRuns, type ToolRunFindings, type ToolRunResult } from './tool-runs.ts'

/** Calls of the calling model in one answer; the last one is without our tool (contract 16.7). */
const maxTurns = 4
/** Share of the request's time in which runs may start. */
const shareOfTime = 0.9

export interface ToolAnswerOptions {
  readonly tool: FusionTool
  /** The backends of the requested profile, in order: one of them gives the answer. */
  readonly backends: readonly Backend[]
  /** The backends that deliberate. */
  readonly members: readonly Backend[]
  readonly accountId: string
  readonly deferred: DeferredQuestions
  /** Whether the last message is the user's: forced deliberation happens once per user message (contract 16.5). */
  readonly isUsersTurn: boolean
  /** The findings of an earlier run in the same user turn, for a request in which tools have answered. */
  readonly memo: FusionMemo | undefined
  readonly takeSlot: () => Disposable
}

/**
 * Answers a request with the fusion tool attached: the calling model decides whether to ask several models, and
 * continues the same answer with their findings. A failed run is returned as an ordinary tool result.
 */
export async function answerWithTool(session: FusionSession, options: ToolAnswerOptions): Promise<FusionEnd> {
  const answer = new ToolAnswer(session, options)
  try {
    return await answer.answer()
  } finally {
    answer.close()
  }
}

class ToolAnswer {
  readonly #session: FusionSession
  readonly #options: ToolAnswerOptions
  readonly #costs: CostTracker
  readonly #runs: ToolRuns
  readonly #reporter: ToolRunReporter
  readonly #model: CallingModel
  readonly #startedMs: number
  /** The caller's conversation, with the findings from before the model was called. */
  #conversation: Conversation
  /** The model's replies since then, with the results of its calls. */
  readonly #since: Turn[] = []
  readonly #fences: Fence[] = []
  #isWithdrawn = false
  #best: string | undefined
  #mayRetry = true
  /** A question that was asked alongside the caller's tools and is answered here. */
  #waiting: DeferredEntry | undefined

  constructor(session: FusionSession, options: ToolAnswerOptions) {
    const { port, signal, context, accountId, deps } = session
    const breakerKey = { accountId, contentKind: () => contentKindOf(context.conversation) }
    const { settings } = options.tool
    this.#session = session
    this.#options = options
    this.#conversation = options.isUsersTurn ? context.conversation : withMemo(context.conversation, options.memo)
    this.#startedMs = port.clock.monotonicMs()
    this.#costs = new CostTracker(settings.maxCostUsd)
    this.#reporter = new ToolRunReporter(session, settings)
    this.#model = new CallingModel(session, options.backends, this.#costs, this.#reporter)
    this.#runs = new ToolRuns({
      conversation: context.conversation,
      settings,
      port,
      signal,
      costs: this.#costs,
      members: () =>
        membersOf(
          options.members.filter(({ id }) => deps.breakers.availability(id, breakerKey).usable),
          port.clock.nowMs(),
        ),
      listener: this.#reporter.listener,
      takeSlot: options.takeSlot,
      onRecord: (record) => session.recordFusion(record),
      remainingMs: () => this.#remainingMs,
    })
  }

  close(): void {
    this.#reporter.close()
  }

  async answer(): Promise<FusionEnd> {
    this.#reporter.begin()
    await this.#runFirst()
    let turn = 1
    for (;;) {
      if (this.#session.signal.aborted) return this.#ended()
      const presence = this.#presence(turn)
      const { reply, error } = await this.#readReply(presence)
      if (this.#session.signal.aborted) return this.#ended()
      if (error !== undefined) {
        if (reply.isSeen) return this.#ended(error)
        if (error instanceof UpstreamError && !isRefusal(error) && this.#mayRetry) {
          this.#mayRetry = false
          continue
        }
        return this.#fallbackAnswer(error)
      }
      const { finish = 'stop', ours, callIds } = reply
      if (ours.length === 0) {
        if (!this.#isQuiet(reply)) return this.#end(finish)
        if (this.#canFallBack || !this.#mayRetry) return this.#fallbackAnswer(new UpstreamError('broken'))
        this.#mayRetry = false
        this.#model.skip()
        continue
      }
      if (callIds.length > 0) return this.#defer(reply, presence)
      if (presence !== 'offered' && (reply.hasText || this.#canFallBack || turn >= maxTurns))
        return reply.hasText ? this.#end('stop') : this.#fallbackAnswer(new UpstreamError('broken'))
      await this.#answerCalls(reply, presence)
      turn += 1
    }
  }

  /** Runs the deliberation that comes before the first call of the model. */
  async #runFirst(): Promise<void> {
    const { deferred, accountId } = this.#options
    const waiting = deferred.find(accountId, this.#session.context.conversation.turns)
    const reason = waiting === undefined ? this.#reasonToBegin : 'deferred'
    if (reason === undefined) return
    const result = await this.#ask(reason, waiting)
    if (!('failure' in result)) {
      this.#conversation = withFindings(this.#conversation, this.#model.window, result, waiting)
      this.#show(result)
    }
    this.#waiting = waiting
  }

  get #reasonToBegin(): RunReason | undefined {
    const { tool, isUsersTurn } = this.#options
    if (!isUsersTurn) return undefined
    if (tool.isForced) return 'forced'
    if (tool.settings.mode === 'always') return 'always'
    return this.#model.knowsTools ? undefined : 'no_tool_support'
  }

  #presence(turn: number): ToolPresence {
    const wasCalled = this.#since.length > 0
    const { knowsTools } = this.#model
    const isOpen = !this.#isWithdrawn && turn < maxTurns && (!this.#runs.isSpent || wasCalled)
    if (knowsTools && this.#options.tool.isAllowed && isOpen) return 'offered'
    return knowsTools && wasCalled ? 'declared' : 'absent'
  }

  #readReply(presence: ToolPresence): Promise<ModelReply> {
    const request = callingModelRequest({
      conversation: this.#conversation,
      since: this.#since,
      presence,
      maxRuns: this.#options.tool.settings.maxRuns,
      isBounded: this.#costs.isCapped,
    })
    return this.#model.read(request, this.#fences)
  }

  /** Answers each of the model's calls; all calls of one reply share one run. */
  async #answerCalls(reply: CallingModelAnswer, presence: ToolPresence): Promise<void> {
    const calls = reply.ours.map((call) => readCall(call.arguments))
    const asked = calls.filter((call) => call !== undefined).slice(0, maxQuestions)
    let result: ToolRunResult
    if (asked.length === 0) result = { failure: 'no_question' }
    // A model may call the tool without being offered it: that starts no run.
    else if (presence !== 'offered') result = { failure: 'limit' }
    else result = await this.#ask('called', joinCalls(asked))
    this.#since.push({ role: 'assistant', parts: reply.parts })
    let isFirst = true
    for (const [index, call] of reply.ours.entries()) {
      const readable = calls[index]
      const isAsked = readable !== undefined && asked.includes(readable)
      let text: string
      if ('failure' in result) text = failureText(result.failure)
      else if (!isAsked) text = failureText(readable === undefined ? 'no_question' : 'limit')
      else text = isFirst ? findingsText(this.#conversation, this.#model.window, result) : mergedPrompt
      if (isAsked) isFirst = false
      this.#since.push({ role: 'tool', callId: call.id, kind: 'function', parts: [{ type: 'text', text }] })
    }
    if (!('failure' in result)) this.#show(result)
    else if (result.failure !== 'no_question' && result.failure !== 'all_panels_failed') this.#isWithdrawn = true
    this.#isWithdrawn ||= this.#runs.isRepeating
  }

  async #ask(reason: RunReason, questions: Parameters<ToolRuns['ask']>[0]): Promise<ToolRunResult> {
    const before = this.#runs.count
    const result = await this.#runs.ask(questions)
    if (this.#session.signal.aborted) return result
    if (this.#runs.count > before) this.#reporter.finished(reason, questions, result)
    else if ('failure' in result) this.#reporter.refuse(result.failure)
    return result
  }

  #show(found: ToolRunFindings): void {
    this.#best = found.best ?? this.#best
    this.#remember(found)
    const fence = fenceOf(found)
    if (fence !== undefined && !this.#fences.includes(fence)) this.#fences.push(fence)
  }

  /**
   * With the caller's own tools attached, a later request will bring their results: the same writer gets it, with the
   * findings.
   */
  #remember({ deliberation }: ToolRunFindings): void {
    const { port, context } = this.#session
    if (context.conversation.tools.length === 0) return
    const memo = memoOf(this.#model.writer, notesFrom(deliberation))
    if (memo.notes !== undefined) this.#reporter.attachSealed(port.remember?.(memo))
  }

  /** The caller's tools go first: a question asked alongside them waits for their results. */
  #defer(reply: CallingModelAnswer, presence: ToolPresence): FusionEnd {
    const { tool, deferred, accountId } = this.#options
    const asked = reply.ours.flatMap((call) => readCall(call.arguments) ?? []).slice(0, maxQuestions)
    if (tool.settings.mixed === 'defer' && presence === 'offered' && asked.length > 0) {
      deferred.keep(accountId, this.#session.context.conversation.turns, reply.callIds, joinCalls(asked))
      this.#reporter.defer()
    }
    return this.#end('tool_calls')
  }

  /** A model that called our tool, or was shown findings, and then returns nothing has failed. */
  #isQuiet({ hasText, callIds, finish }: CallingModelAnswer): boolean {
    if (hasText || callIds.length > 0 || (finish !== 'stop' && finish !== 'tool_calls')) return false
    return this.#since.length > 0 || this.#runs.count > 0
  }

  /**
   * The model failed: the panel's best answer replaces its reply, if there is one in the requested format (contract
   * 16.7).
   */
  async #fallbackAnswer(error: unknown): Promise<FusionEnd> {
    if (this.#best === undefined || !this.#canFallBack) return this.#ended(error)
    await this.#reporter.writeEvents(this.#best)
    return this.#end('stop')
  }

  get #canFallBack(): boolean {
    const { outputFormat } = this.#session.context.conversation
    return this.#best !== undefined && (outputFormat === undefined || outputFormat.type === 'text')
  }

  #end(reason: FinishReason): FusionEnd {
    // Only a complete answer uses up the question: a caller that sends its results again asks it again.
    if (this.#waiting !== undefined) this.#options.deferred.forget(this.#waiting)
    this.#reporter.end(this.#costs.usageInParts(this.#modelOf), reason)
    return this.#ended()
  }

  #ended(error?: unknown): FusionEnd {
    const { usage } = this.#costs
    return error instanceof Error ? { error, usage } : { usage }
  }

  /** The model of each call, if the operator discloses it to callers. */
  get #modelOf(): ((id: string) => string | undefined) | undefined {
    const { tool, members, backends } = this.#options
    if (!tool.settings.namesModels) return undefined
    return (id) => [...members, ...backends].find((backend) => backend.id === id)?.model
  }

  get #remainingMs(): number {
    const { totalMs, port } = this.#session
    const limitMs = Math.min(this.#options.tool.settings.totalMs, totalMs * shareOfTime)
    return limitMs - (port.clock.monotonicMs() - this.#startedMs)
  }
}
