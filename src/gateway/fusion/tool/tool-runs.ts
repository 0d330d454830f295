import type { Conversation, Turn } from '../../../domain/conversation.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { FusionRecord } from '../../../domain/fusion-record.ts'
import type { JsonObject } from '../../../domain/json.ts'
import type { CostTracker } from '../engine/cost-tracker.ts'
import { deliberate, type Deliberation, type DeliberationListener } from '../engine/deliberate.ts'
import { FusionRun } from '../engine/fusion-run.ts'
import { outcomeOf } from '../engine/outcome.ts'
import { rankByMedoid } from '../engine/panel/medoid.ts'
import type { FusionMember, FusionPort } from '../engine/ports.ts'
import { questionPrompt } from '../engine/prompts.ts'
import { buildReport } from '../engine/report.ts'
import { withTimeLimit, type FusionSettings } from '../engine/settings.ts'
import { appendToUser } from '../engine/transcript.ts'
import { isUserTurn } from '../engine/user-turns.ts'
import { keyOf, type Questions } from './questions.ts'

/** Share of the remaining time, and its maximum, that the reply after a run needs. */
const replyShare = 0.3
const longestReplyMs = 15_000
/** A run with less time than this would find nothing. */
const leastRunMs = 2_000
/** How often a repeated question is answered from memory before the tool is withdrawn from the model. */
const maxRepeats = 1

/** Why a run has no findings, as reported to the model and the caller. */
export type FailureReason = 'all_panels_failed' | 'rate_limited' | 'deadline' | 'cost_cap' | 'limit' | 'no_question'

/** The findings of a run. */
export interface ToolRunFindings {
  readonly deliberation: Deliberation
  /** What the caller may see of it. */
  readonly report: JsonObject
  /** The best answer that could be sent unchanged; absent if none is trusted. */
  readonly best?: string
}

export type ToolRunResult = ToolRunFindings | { readonly failure: FailureReason }

export interface ToolRunsOptions {
  readonly conversation: Conversation
  readonly settings: FusionSettings
  readonly port: FusionPort
  readonly signal: AbortSignal
  readonly costs: CostTracker
  /** The members that are available now. */
  readonly members: () => readonly FusionMember[]
  readonly listener: DeliberationListener & { onBegin(asked: number): void }
  /** Takes one of the account's concurrent fusions. @throws ServiceError if there are too many */
  readonly takeSlot: () => Disposable
  /** Called with the record of each run. */
  readonly onRecord: (record: FusionRecord) => void
  /** Milliseconds left for the whole answer. */
  readonly remainingMs: () => number
}

/** The fusion tool's runs in one answer: limited in number and time, and run once per question. */
export class ToolRuns {
  readonly #options: ToolRunsOptions
  readonly #known = new Map<string, ToolRunFindings>()
  #repeats = 0
  #startedRuns = 0

  constructor(options: ToolRunsOptions) {
    this.#options = options
  }

  /** Number of runs that started; a rejected one has not. */
  get count(): number {
    return this.#startedRuns
  }

  get isSpent(): boolean {
    return this.#startedRuns >= this.#options.settings.maxRuns
  }

  /** Whether the model keeps asking questions that were answered. */
  get isRepeating(): boolean {
    return this.#repeats > maxRepeats
  }

  /** Deliberates on these questions, or on the conversation itself if there are none. */
  async ask(questions: Questions | undefined): Promise<ToolRunResult> {
    const key = questions === undefined ? '' : keyOf(questions)
    const known = this.#known.get(key)
    if (known !== undefined) {
      this.#repeats += 1
      return known
    }
    if (this.isSpent) return { failure: 'limit' }
    const leftMs = this.#options.remainingMs()
    const limitMs = leftMs - Math.min(leftMs * replyShare, longestReplyMs)
    if (limitMs < leastRunMs) return { failure: 'deadline' }
    const members = this.#options.members()
    if (members.length === 0) return { failure: 'all_panels_failed' }
    using slot = this.#takeSlot()
    if (slot === undefined) return { failure: 'rate_limited' }
    this.#startedRuns += 1
    const result = await this.#run(questions, members, limitMs)
    if (!('failure' in result)) this.#known.set(key, result)
    return result
  }

  /** Undefined if the account has too many concurrent fusions. */
  #takeSlot(): Disposable | undefined {
    try {
      return this.#options.takeSlot()
    } catch (error) {
      if (error instanceof ServiceError) return undefined
      throw error
    }
  }

  async #run(
    questions: Questions | undefined,
    members: readonly FusionMember[],
    limitMs: number,
  ): Promise<ToolRunResult> {
    const { settings: given, port, signal, costs, listener } = this.#options
    const settings = withTimeLimit(given, limitMs)
    const conversation = panelConversation(this.#options.conversation, questions, settings)
    const before = costs.records.length
    using run = new FusionRun({ conversation, members, settings, costs }, port, signal)
    listener.onBegin(run.plan.slots.length)
    const deliberation = await deliberate(run, listener)
    this.#options.onRecord(fusionRecordOf(run, deliberation, before))
    if (deliberation.panel.answers.length === 0) return { failure: failureOf(run, deliberation) }
    const { include } = settings
    const report = buildReport({ deliberation, degraded: run.degraded, include, totalMs: run.elapsedMs })
    const best = bestOf(deliberation)
    return { deliberation, report, ...(best === undefined ? {} : { best }) }
  }
}

/** The panel's input: the conversation followed by the question, or the question alone. */
function panelConversation(
  conversation: Conversation,
  questions: Questions | undefined,
  { context }: FusionSettings,
): Conversation {
  const { fusionTool: _, outputFormat, ...rest } = conversation
  // The output format is for the model that writes the reply; a panel that stands in for the reply gets it too.
  const base = questions === undefined && outputFormat !== undefined ? { ...rest, outputFormat } : rest
  const isAlone = context === 'question'
  const { instructions: __, ...hints } = conversation.hints
  const bare = isAlone ? { ...base, hints } : base
  if (questions === undefined) {
    const last = conversation.turns.findLast(isUserTurn)
    return isAlone && last !== undefined ? { ...bare, turns: [last] } : bare
  }
  const text = questionPrompt(questions.questions, questions.focus)
  if (isAlone) return { ...bare, turns: [userTurn(text)] }
  const isUsersTurn = conversation.turns.at(-1)?.role === 'user'
  const turns = isUsersTurn ? appendToUser(base.turns, `\n\n${text}`) : [...base.turns, userTurn(text)]
  return { ...bare, turns }
}

/** The record of one run: its own calls from the shared cost tracker. */
function fusionRecordOf(run: FusionRun, deliberation: Deliberation, before: number): FusionRecord {
  const { costUsd: _, ...record } = outcomeOf(run, {}, deliberation).record
  const calls = record.calls.slice(before)
  const costs = calls.flatMap(({ costUsd }) => costUsd ?? [])
  return { ...record, calls, ...(costs.length === 0 ? {} : { costUsd: costs.reduce((sum, cost) => sum + cost, 0) }) }
}

function userTurn(text: string): Turn {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

function failureOf({ degraded, remainingMs }: FusionRun, { panel }: Deliberation): FailureReason {
  const reasons = new Set(panel.dropOuts.map(({ why }) => why))
  if (degraded.includes('cost_cap')) return 'cost_cap'
  if (remainingMs === 0 || [...reasons].every((why) => why === 'timeout' || why === 'cut')) return 'deadline'
  return reasons.size === 1 && reasons.has('rate_limited') ? 'rate_limited' : 'all_panels_failed'
}

function bestOf({ panel, decision }: Deliberation): string | undefined {
  if (decision?.verdict === 'insufficient') return undefined
  const answers = decision?.ranking.map(({ candidate }) => candidate.answer) ?? rankByMedoid(panel.answers)
  return answers.find(({ truncated }) => !truncated)?.text
}
