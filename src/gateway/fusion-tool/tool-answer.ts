import type { Conversation, FinishReason, Turn } from '../../domain/conversation.ts'
import type { FusionMemo } from '../../domain/fusion-memo.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import type { FusedEnd, FusedSurface } from '../fused-answer.ts'
import { Book } from '../fusion/book.ts'
import { notesFrom } from '../fusion/deliberate.ts'
import { memoOf } from '../fusion/digest.ts'
import type { Fence } from '../fusion/fence.ts'
import { membersOf } from '../fusion/members.ts'
import { mergedPrompt } from '../fusion/prompts.ts'
import type { Backend } from '../ports.ts'
import { contentKindOf } from '../routing/content-kind.ts'
import type { Deferred, DeferredQuestions } from './deferred-questions.ts'
import { failureText, fenceOf, findingsText, withFindings, withMemo } from './findings.ts'
import type { OuterAnswer } from './outer-answer.ts'
import { OuterModel, type Heard } from './outer-model.ts'
import { outerRequest, type Presence } from './presented-tool.ts'
import { joinCalls, maxQuestions, readCall } from './questions.ts'
import type { FusionTool } from './read-tool.ts'
import { Runs, type RunFound, type RunResult } from './runs.ts'
import { Telling, type RunReason } from './telling.ts'

/** Calls of the calling model in one answer; the last one is without our tool. */
const maxTurns = 4
/** Share of the request's time in which runs may start. */
const shareOfTime = 0.9

export interface ToolAnswerOf {
  readonly tool: FusionTool
  /** The backends of the requested profile, in order: one of them gives the answer. */
  readonly backends: readonly Backend[]
  /** The backends that deliberate. */
  readonly members: readonly Backend[]
  readonly accountId: string
  readonly deferred: DeferredQuestions
  /** Whether the last message is the user's: forced deliberation happens once per user message. */
  readonly isUsersTurn: boolean
  /** The findings of an earlier run in the same user turn, for a request in which tools have answered. */
  readonly memo: FusionMemo | undefined
  readonly takeSlot: () => Disposable
}

/**
 * Answers a request with the fusion tool attached: the calling model decides whether to ask several models, and
 * continues the same answer with their findings. A failed run is returned as an ordinary tool result.
 */
export async function answerWithTool(surface: FusedSurface, of: ToolAnswerOf): Promise<FusedEnd> {
  const answer = new ToolAnswer(surface, of)
  try {
    return await answer.answer()
  } finally {
    answer.close()
  }
}

class ToolAnswer {
  readonly #surface: FusedSurface
  readonly #of: ToolAnswerOf
  readonly #book: Book
  readonly #runs: Runs
  readonly #telling: Telling
  readonly #model: OuterModel
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
  #waiting: Deferred | undefined

  constructor(surface: FusedSurface, of: ToolAnswerOf) {
    const { port, signal, context, accountId, parts } = surface
    const asker = { accountId, contentKind: () => contentKindOf(context.conversation) }
    const { settings } = of.tool
    this.#surface = surface
    this.#of = of
    this.#conversation = of.isUsersTurn ? context.conversation : withMemo(context.conversation, of.memo)
    this.#startedMs = port.clock.monotonicMs()
    this.#book = new Book(settings.maxCostUsd)
    this.#telling = new Telling(surface, settings)
    this.#model = new OuterModel(surface, of.backends, this.#book, this.#telling)
    this.#runs = new Runs({
      conversation: context.conversation,
      settings,
      port,
      signal,
      book: this.#book,
      members: () => membersOf(of.members.filter(({ id }) => parts.breakers.availability(id, asker).usable)),
      listener: this.#telling.listener,
      takeSlot: of.takeSlot,
      onRecord: (record) => surface.recordFusion(record),
      remainingMs: () => this.#remainingMs,
    })
  }

  close(): void {
    this.#telling.close()
  }

  async answer(): Promise<FusedEnd> {
    this.#telling.begin()
    await this.#runFirst()
    let turn = 1
    for (;;) {
      if (this.#surface.signal.aborted) return this.#ended()
      const presence = this.#presence(turn)
      const { heard, error } = await this.#hear(presence)
      if (this.#surface.signal.aborted) return this.#ended()
      if (error !== undefined) {
        if (heard.isSeen) return this.#ended(error)
        if (error instanceof UpstreamError && this.#mayRetry) {
          this.#mayRetry = false
          continue
        }
        return this.#standIn(error)
      }
      const { finish = 'stop', ours, callIds } = heard
      if (ours.length === 0) {
        if (!this.#isSilent(heard)) return this.#end(finish)
        if (this.#canStandIn || !this.#mayRetry) return this.#standIn(new UpstreamError('broken'))
        this.#mayRetry = false
        this.#model.passOver()
        continue
      }
      if (callIds.length > 0) return this.#defer(heard, presence)
      if (presence !== 'offered' && (heard.hasText || this.#canStandIn || turn >= maxTurns))
        return heard.hasText ? this.#end('stop') : this.#standIn(new UpstreamError('broken'))
      await this.#answerCalls(heard, presence)
      turn += 1
    }
  }

  /** Runs the deliberation that comes before the first call of the model. */
  async #runFirst(): Promise<void> {
    const { deferred, accountId } = this.#of
    const waiting = deferred.find(accountId, this.#surface.context.conversation.turns)
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
    const { tool, isUsersTurn } = this.#of
    if (!isUsersTurn) return undefined
    if (tool.isForced) return 'forced'
    if (tool.settings.mode === 'always') return 'always'
    return this.#model.knowsTools ? undefined : 'no_tool_support'
  }

  #presence(turn: number): Presence {
    const wasCalled = this.#since.length > 0
    const { knowsTools } = this.#model
    const isOpen = !this.#isWithdrawn && turn < maxTurns && (!this.#runs.isSpent || wasCalled)
    if (knowsTools && this.#of.tool.isAllowed && isOpen) return 'offered'
    return knowsTools && wasCalled ? 'declared' : 'absent'
  }

  #hear(presence: Presence): Promise<Heard> {
    const request = outerRequest({
      conversation: this.#conversation,
      since: this.#since,
      presence,
      maxRuns: this.#of.tool.settings.maxRuns,
      isBounded: this.#book.isCapped,
    })
    return this.#model.hear(request, this.#fences)
  }

  /** Answers each of the model's calls; all calls of one reply share one run. */
  async #answerCalls(heard: OuterAnswer, presence: Presence): Promise<void> {
    const calls = heard.ours.map((call) => readCall(call.arguments))
    const asked = calls.filter((call) => call !== undefined).slice(0, maxQuestions)
    let result: RunResult
    if (asked.length === 0) result = { failure: 'no_question' }
    // A model may call the tool without being offered it: that starts no run.
    else if (presence !== 'offered') result = { failure: 'limit' }
    else result = await this.#ask('called', joinCalls(asked))
    this.#since.push({ role: 'assistant', parts: heard.parts })
    let isFirst = true
    for (const [index, call] of heard.ours.entries()) {
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

  async #ask(reason: RunReason, questions: Parameters<Runs['ask']>[0]): Promise<RunResult> {
    const before = this.#runs.count
    const result = await this.#runs.ask(questions)
    if (this.#surface.signal.aborted) return result
    if (this.#runs.count > before) this.#telling.ran(reason, questions, result)
    else if ('failure' in result) this.#telling.refuse(result.failure)
    return result
  }

  #show(found: RunFound): void {
    this.#best = found.best ?? this.#best
    this.#remember(found)
    const fence = fenceOf(found)
    if (fence !== undefined && !this.#fences.includes(fence)) this.#fences.push(fence)
  }

  /**
   * With the caller's own tools attached, a later request will bring their results: the same writer gets it, with the
   * findings.
   */
  #remember({ deliberation }: RunFound): void {
    const { port, context } = this.#surface
    if (context.conversation.tools.length === 0) return
    const memo = memoOf(this.#model.writer, notesFrom(deliberation))
    if (memo.notes !== undefined) this.#telling.seal(port.remember?.(memo))
  }

  /** The caller's tools go first: a question asked alongside them waits for their results. */
  #defer(heard: OuterAnswer, presence: Presence): FusedEnd {
    const { tool, deferred, accountId } = this.#of
    const asked = heard.ours.flatMap((call) => readCall(call.arguments) ?? []).slice(0, maxQuestions)
    if (tool.settings.mixed === 'defer' && presence === 'offered' && asked.length > 0) {
      deferred.keep(accountId, this.#surface.context.conversation.turns, heard.callIds, joinCalls(asked))
      this.#telling.defer()
    }
    return this.#end('tool_calls')
  }

  /** A model that called our tool, or was shown findings, and then returns nothing has failed. */
  #isSilent({ hasText, callIds, finish }: OuterAnswer): boolean {
    if (hasText || callIds.length > 0 || (finish !== 'stop' && finish !== 'tool_calls')) return false
    return this.#since.length > 0 || this.#runs.count > 0
  }

  /** The model failed: the panel's best answer replaces its reply, if there is one in the requested format. */
  async #standIn(error: unknown): Promise<FusedEnd> {
    if (this.#best === undefined || !this.#canStandIn) return this.#ended(error)
    await this.#telling.sayAll(this.#best)
    return this.#end('stop')
  }

  get #canStandIn(): boolean {
    const { outputFormat } = this.#surface.context.conversation
    return this.#best !== undefined && (outputFormat === undefined || outputFormat.type === 'text')
  }

  #end(reason: FinishReason): FusedEnd {
    // Only a complete answer uses up the question: a caller that sends its results again asks it again.
    if (this.#waiting !== undefined) this.#of.deferred.forget(this.#waiting)
    this.#telling.end(this.#book.usageInParts(this.#modelOf), reason)
    return this.#ended()
  }

  #ended(error?: unknown): FusedEnd {
    const { usage } = this.#book
    return error instanceof Error ? { error, usage } : { usage }
  }

  /** The model of each call, if the operator discloses it to callers. */
  get #modelOf(): ((id: string) => string | undefined) | undefined {
    const { tool, members, backends } = this.#of
    if (!tool.settings.namesModels) return undefined
    return (id) => [...members, ...backends].find((backend) => backend.id === id)?.model
  }

  get #remainingMs(): number {
    const { totalMs, port } = this.#surface
    const limitMs = Math.min(this.#of.tool.settings.totalMs, totalMs * shareOfTime)
    return limitMs - (port.clock.monotonicMs() - this.#startedMs)
  }
}
