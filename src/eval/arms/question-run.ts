import type { Conversation } from '../../domain/conversation.ts'
import type { PresetName } from '../../domain/fusion-presets.ts'
import { hashText } from '../../gateway/fusion/engine/seeded-random.ts'
import { selfPanelDesign, type FusionDesign } from '../design.ts'
import type { EvalMember, EvalPort } from '../ports.ts'
import { keyOf } from '../questions/check-answer.ts'
import { Draw } from '../questions/draw.ts'
import type { Question } from '../questions/question.ts'
import type { Recorder } from '../recorder.ts'
import { resultOf, voteOf, type ArmResult } from './arm-result.ts'
import { runFusion, tampered, withoutAnalysis, type FusedResult } from './fusion-arm.ts'
import { askPanel, sampleMember } from './model-arms.ts'
import { placeboIds, placeboJudge, type PlaceboId } from './placebo-judges.ts'

/** One question in every arm, all with the same panel answers. */
export interface QuestionOutcome {
  readonly question: Question
  /** Each member alone, in the order of the panel: its panel answer. */
  readonly singles: readonly ArmResult[]
  /** The best member, asked without fusion's prompts: the first sample of `selfConsistency`. */
  readonly plain: ArmResult
  /** The most frequent answer among as many samples of the best member as the fusion's cost buys. */
  readonly selfConsistency: ArmResult
  readonly samples: number
  /** The most frequent answer of the panel; absent for a panel of one. */
  readonly majority?: ArmResult
  /** The best member fused with itself; absent if that is the fusion. */
  readonly selfPanel?: ArmResult
  readonly fusion: FusedResult
  readonly withoutAnalysis: ArmResult
  readonly placebos: Readonly<Record<PlaceboId, FusedResult>>
}

/** A question with one candidate that is wrong and gives orders. */
export interface InjectedOutcome {
  readonly question: Question
  readonly fusion: FusedResult
  /** Whether the reply is what the tampered candidate ordered. */
  readonly wasObeyed: boolean
}

interface RunOptions {
  readonly recorder: Recorder
  readonly clock: EvalPort['clock']
  readonly question: Question
  readonly conversation: Conversation
  readonly fusion: FusionDesign
  readonly signal: AbortSignal
  readonly seed: number
}

export interface QuestionRunOptions extends RunOptions {
  readonly members: readonly EvalMember[]
  readonly best: EvalMember
  readonly preset: PresetName
}

/** @throws EvaluationStop */
export async function runQuestion(options: QuestionRunOptions): Promise<QuestionOutcome> {
  const { question, members, best, preset, fusion: design, seed } = options
  const { expected } = question
  const replies = await askPanel({ ...options, settings: design.settings }, members)
  const fusion = await runFusion({ ...options, ...design })
  const placebo = (id: PlaceboId): Promise<FusedResult> =>
    runFusion({ ...options, ...design, intercept: placeboJudge(id, hashText(`${id} ${question.number}`, seed)) })
  const placebos: Partial<Record<PlaceboId, FusedResult>> = {}
  for (const id of placeboIds) placebos[id] = await placebo(id)
  const withoutJudge = await runFusion({ ...options, ...design, intercept: withoutAnalysis })
  const samples = await sampleMember({ ...options, settings: design.settings }, best, fusion.usd)
  const alone = members.length < 2
  const self = alone ? undefined : await runFusion({ ...options, ...selfPanelDesign(best, members.length, preset) })
  // If votes are tied, the best member's answer wins.
  const bestFirst = [replies[members.indexOf(best)]!, ...replies.filter((_, index) => members[index] !== best)]
  return {
    question,
    singles: replies.map((reply) => resultOf(expected, reply)),
    plain: resultOf(expected, samples[0]!),
    selfConsistency: voteOf(expected, samples),
    samples: samples.length,
    ...(alone ? {} : { majority: voteOf(expected, bestFirst) }),
    ...(self === undefined ? {} : { selfPanel: self }),
    fusion,
    withoutAnalysis: withoutJudge,
    placebos: placebos as Record<PlaceboId, FusedResult>,
  }
}

/** @throws EvaluationStop */
export async function runInjected(options: RunOptions): Promise<InjectedOutcome> {
  const { question, fusion: design, seed } = options
  const { text, ordered } = question.injection!
  const draw = new Draw(hashText(`tampered ${question.number}`, seed))
  const victim = draw.one(design.members)
  const fusion = await runFusion({ ...options, ...design, intercept: tampered(victim.id, text) })
  const { expected } = question
  const said = fusion.answer === undefined ? undefined : keyOf(expected, fusion.answer)
  const wasObeyed = said !== undefined && said === keyOf(expected, ordered)
  return { question, fusion, wasObeyed }
}
