import type { PresetName } from '../domain/fusion-presets.ts'
import { resultOf, type Reply } from './arms/arm-result.ts'
import { askPanel, type ModelArmOptions } from './arms/model-arms.ts'
import { runInjected, runQuestion, type InjectedOutcome, type QuestionOutcome } from './arms/question-run.ts'
import { conversationOf, fusionDesign, type FusionDesign } from './design.ts'
import { EvaluationStop, type EvalMember, type EvalPort, type Kept } from './ports.ts'
import type { Question } from './questions/question.ts'
import { Recorder } from './recorder.ts'

/** The number of first questions whose panel answers determine the best member, before anything else is asked. */
const pilotQuestions = 24
/** Maximum number of concurrent questions. */
const atOnce = 4

export interface EvaluationOptions {
  readonly port: EvalPort
  /** The panel, in order; one to eight members. */
  readonly members: readonly EvalMember[]
  readonly questions: readonly Question[]
  readonly preset: PresetName
  readonly seed: number
  /** The limit in US dollars, including what was spent before. */
  readonly maxUsd: number
  /** Maximum number of calls in this run, including retries. */
  readonly maxCalls: number
  readonly kept: Kept
  readonly signal: AbortSignal
  /** Called after each question, with `done` of `questions.length`. */
  readonly onProgress: (done: number, spentUsd: number) => void
}

/** The results of questions that every arm answered, so that all arms are compared on the same ones (contract 34.3). */
export interface Evaluation {
  readonly questions: readonly QuestionOutcome[]
  readonly injected: readonly InjectedOutcome[]
  /** The member that the single-model arms use: the best one on the first questions. */
  readonly best: EvalMember
  readonly spentUsd: number
  /** The calls of this run, not of earlier ones. */
  readonly calls: number
  /** Why the evaluation ended early. */
  readonly stop?: EvaluationStop
}

/**
 * Runs every arm on every question until all are done, the money is spent, or the signal is aborted. Rejects only for
 * bugs.
 */
export async function evaluate(options: EvaluationOptions): Promise<Evaluation> {
  const { port, members, kept, maxUsd, maxCalls, signal, seed } = options
  const recorder = new Recorder({ port, members, kept, maxUsd, maxCalls, signal })
  const fusion = fusionDesign(members, options.preset)
  const questions: QuestionOutcome[] = []
  const injected: InjectedOutcome[] = []
  let best = members[0]!
  const end = (stop?: EvaluationStop): Evaluation => ({
    questions: questions.sort((a, b) => a.question.number - b.question.number),
    injected: injected.sort((a, b) => a.question.number - b.question.number),
    best,
    spentUsd: recorder.spentUsd,
    calls: recorder.calls,
    ...(stop === undefined ? {} : { stop }),
  })
  try {
    best = members.find(({ id }) => id === kept.best) ?? (await findBest(options, recorder, fusion))
    if (kept.best !== best.id) port.journal.choseBest(best.id)
    await forEach(options.questions, async (question) => {
      const run = { recorder, clock: port.clock, question, conversation: conversationOf(question), signal, seed }
      if (question.injection === undefined)
        questions.push(await runQuestion({ ...run, fusion, members, best, preset: options.preset }))
      else injected.push(await runInjected({ ...run, fusion }))
      options.onProgress(questions.length + injected.length, recorder.spentUsd)
    })
    return end()
  } catch (error) {
    if (error instanceof EvaluationStop) return end(error)
    throw error
  }
}

/** The member with the most right answers on the first questions; the first of equal ones. */
async function findBest(
  options: EvaluationOptions,
  recorder: Recorder,
  { members, settings }: FusionDesign,
): Promise<EvalMember> {
  const { port, signal } = options
  const right = members.map(() => 0)
  const pilot = options.questions.filter(({ injection }) => injection === undefined).slice(0, pilotQuestions)
  if (members.length > 1)
    await forEach(pilot, async (question) => {
      const asking: ModelArmOptions = {
        recorder,
        clock: port.clock,
        conversation: conversationOf(question),
        settings,
        signal,
      }
      const replies = await askPanel(asking, members)
      for (const [index, reply] of replies.entries()) right[index]! += isRightReply(question, reply)
    })
  return options.members[right.indexOf(Math.max(...right))]!
}

function isRightReply({ expected }: Question, reply: Reply): number {
  return Number(resultOf(expected, reply).isRight)
}

/**
 * Runs `work` for all items, a few at once and in order. Starts no more after the first failure. @throws that failure
 */
async function forEach<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  let next = 0
  let failure: { readonly error: unknown } | undefined
  const go = async (): Promise<void> => {
    while (failure === undefined && next < items.length) {
      const item = items[next]!
      next += 1
      try {
        await work(item)
      } catch (error) {
        // A bug takes precedence over an expected end.
        if (failure === undefined || !(error instanceof EvaluationStop)) failure = { error }
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, go))
  if (failure !== undefined) throw failure.error
}
