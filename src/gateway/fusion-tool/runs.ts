import type { FusionRecord } from '../../domain/fusion-record.ts'
import type { Conversation, JsonObject, Turn } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Book } from '../fusion/book.ts'
import { deliberate, type Deliberation, type DeliberationListener } from '../fusion/deliberate.ts'
import { outcomeOf } from '../fusion/outcome.ts'
import { rankByMedoid } from '../fusion/medoid.ts'
import type { FusionMember, FusionPort } from '../fusion/ports.ts'
import { questionPrompt } from '../fusion/prompts.ts'
import { reportOf } from '../fusion/report.ts'
import { FusionRun } from '../fusion/run.ts'
import { shortened, type FusionSettings } from '../fusion/settings.ts'
import { appendToUser } from '../fusion/transcript.ts'
import { isUsers } from '../fusion/users-words.ts'
import { keyOf, type Questions } from './questions.ts'

/** Of what is left of the time, the part that the reply behind a run needs, and the most of it. */
const replyShare = 0.3
const longestReplyMs = 15_000
/** A run that had less time than this would find nothing. */
const leastRunMs = 2_000
/** As often as this one question is answered from memory; whoever asks it again is not offered the tool any more. */
const maxRepeats = 1

/** Why a run found nothing, as the model and the caller are told. */
export type FailureReason = 'all_panels_failed' | 'rate_limited' | 'deadline' | 'cost_cap' | 'limit' | 'no_question'

/** What a run found. */
export interface RunFound {
  readonly deliberation: Deliberation
  /** What the caller may see of it. */
  readonly report: JsonObject
  /** The best answer that could be sent as it is; absent where none is trusted. */
  readonly best?: string
}

export type RunResult = RunFound | { readonly failure: FailureReason }

export interface RunsOf {
  readonly conversation: Conversation
  readonly settings: FusionSettings
  readonly port: FusionPort
  readonly signal: AbortSignal
  readonly book: Book
  /** Those who can be asked just now. */
  readonly members: () => readonly FusionMember[]
  readonly listener: DeliberationListener & { onBegin(asked: number): void }
  /** Takes one of the deliberations that an account may have under way. @throws ServiceError where there are too many */
  readonly takeSlot: () => Disposable
  /** Told the trail of each run. */
  readonly onRecord: (record: FusionRecord) => void
  /** Milliseconds that are left for the whole answer. */
  readonly remainingMs: () => number
}

/** The runs of the fusion tool in one answer: at most so many, in time, and the same question once. */
export class Runs {
  readonly #of: RunsOf
  readonly #known = new Map<string, RunFound>()
  #repeats = 0
  #begun = 0

  constructor(of: RunsOf) {
    this.#of = of
  }

  /** How many have begun; one that was refused has not. */
  get count(): number {
    return this.#begun
  }

  get isSpent(): boolean {
    return this.#begun >= this.#of.settings.maxRuns
  }

  /** Whether the model keeps on asking what it was told. */
  get isRepeating(): boolean {
    return this.#repeats > maxRepeats
  }

  /** Deliberates about these questions, or about the conversation itself where there are none. */
  async ask(questions: Questions | undefined): Promise<RunResult> {
    const key = questions === undefined ? '' : keyOf(questions)
    const known = this.#known.get(key)
    if (known !== undefined) {
      this.#repeats += 1
      return known
    }
    if (this.isSpent) return { failure: 'limit' }
    const leftMs = this.#of.remainingMs()
    const limitMs = leftMs - Math.min(leftMs * replyShare, longestReplyMs)
    if (limitMs < leastRunMs) return { failure: 'deadline' }
    const members = this.#of.members()
    if (members.length === 0) return { failure: 'all_panels_failed' }
    using slot = this.#takeSlot()
    if (slot === undefined) return { failure: 'rate_limited' }
    this.#begun += 1
    const result = await this.#run(questions, members, limitMs)
    if (!('failure' in result)) this.#known.set(key, result)
    return result
  }

  /** Undefined where the account has as many under way as it may. */
  #takeSlot(): Disposable | undefined {
    try {
      return this.#of.takeSlot()
    } catch (error) {
      if (error instanceof ServiceError) return undefined
      throw error
    }
  }

  async #run(questions: Questions | undefined, members: readonly FusionMember[], limitMs: number): Promise<RunResult> {
    const { settings: given, port, signal, book, listener } = this.#of
    const settings = shortened(given, limitMs)
    const conversation = panelConversation(this.#of.conversation, questions, settings)
    const before = book.records.length
    using run = new FusionRun({ conversation, members, settings, book }, port, signal)
    listener.onBegin(run.plan.slots.length)
    const deliberation = await deliberate(run, listener)
    this.#of.onRecord(recordOf(run, deliberation, before))
    if (deliberation.panel.answers.length === 0) return { failure: failureOf(run, deliberation) }
    const { include } = settings
    const report = reportOf({ deliberation, degraded: run.degraded, include, totalMs: run.elapsedMs })
    const best = bestOf(deliberation)
    return { deliberation, report, ...(best === undefined ? {} : { best }) }
  }
}

/** What the panel is asked: the conversation with the question behind it, or the question alone. */
function panelConversation(
  conversation: Conversation,
  questions: Questions | undefined,
  { context }: FusionSettings,
): Conversation {
  const { fusionTool: _, outputFormat, ...rest } = conversation
  // The form of the reply is for who writes it; a panel that stands for the reply itself has it too.
  const asked = questions === undefined && outputFormat !== undefined ? { ...rest, outputFormat } : rest
  const isAlone = context === 'question'
  const { instructions: __, ...hints } = conversation.hints
  const bare = isAlone ? { ...asked, hints } : asked
  if (questions === undefined) {
    const last = conversation.turns.findLast(isUsers)
    return isAlone && last !== undefined ? { ...bare, turns: [last] } : bare
  }
  const text = questionPrompt(questions.questions, questions.focus)
  if (isAlone) return { ...bare, turns: [userTurn(text)] }
  const isUsersTurn = conversation.turns.at(-1)?.role === 'user'
  const turns = isUsersTurn ? appendToUser(asked.turns, `\n\n${text}`) : [...asked.turns, userTurn(text)]
  return { ...bare, turns }
}

/** The trail of one run: of the book that all share, its own calls. */
function recordOf(run: FusionRun, deliberation: Deliberation, before: number): FusionRecord {
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
