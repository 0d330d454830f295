import type { PresetName } from '../domain/fusion-presets.ts'
import { maxAnalysisTokens } from '../gateway/fusion/engine/judge/judge.ts'
import { cautiousInputTokens, outputLimit } from '../gateway/fusion/engine/measure-conversation.ts'
import type { FusionSettings } from '../gateway/fusion/engine/settings.ts'
import { maxSamples } from './arms/model-arms.ts'
import { conversationOf, fusionDesign, selfPanelDesign } from './design.ts'
import type { EvalMember } from './ports.ts'
import { usdOf } from './prices.ts'
import type { Question } from './questions/question.ts'

/** Typical reply lengths in tokens, by our own judgment. Only for the estimate, never for a limit. */
const usual = { answer: 500, analysis: 700, overhead: 250 }
/** Tokens around quoted answers: rules, marks, notes. */
const worstOverhead = 3_000
const usualSamples = 5
/** The engine's failure ladder: two judges and their repairs, and further checks with repairs. */
const mostJudgeCalls = ({ extraJudgePasses }: FusionSettings): number => 4 + 2 * extraJudgePasses

/** A number of calls and their cost in US dollars. */
interface CostSum {
  readonly calls: number
  readonly usd: number
}

export interface CostEstimate {
  readonly typical: CostSum
  /** With every step of every failure ladder and the longest possible replies. */
  readonly most: CostSum
}

export interface CostEstimateOptions {
  readonly members: readonly EvalMember[]
  readonly questions: readonly Question[]
  readonly preset: PresetName
}

interface Step {
  readonly times: number
  readonly inputTokens: number
  readonly outputTokens: number
}

/** Estimates the calls and cost of an evaluation before any call is made. */
export function estimateCost({ members, questions, preset }: CostEstimateOptions): CostEstimate {
  const sums = { typical: { calls: 0, usd: 0 }, most: { calls: 0, usd: 0 } }
  const mostExpensive = members.reduce((worst, member) => (usdOf(member, 1, 1) > usdOf(worst, 1, 1) ? member : worst))
  const add = (sum: { calls: number; usd: number }, member: EvalMember, step: Step): void => {
    sum.calls += step.times
    sum.usd += step.times * usdOf(member, step.inputTokens, step.outputTokens)
  }
  const { settings } = fusionDesign(members, preset)
  const self = members.length < 2 ? 0 : selfPanelDesign(mostExpensive, members.length, preset).settings.panelSize - 1
  const size = settings.panelSize
  for (const question of questions) {
    const input = cautiousInputTokens(conversationOf(question))
    const longest = (member: EvalMember): number => outputLimit(member, settings.maxPanelTokens)
    const isWhole = question.injection === undefined
    const answers = members.length < 2 ? size : 1
    for (const member of members) {
      add(sums.typical, member, { times: answers, inputTokens: input + usual.overhead, outputTokens: usual.answer })
      add(sums.most, member, { times: answers, inputTokens: input + worstOverhead, outputTokens: longest(member) })
    }
    // Which model judges, writes, and is sampled is not known yet, so assume the most expensive one.
    const all = Math.max(...members.map(longest))
    const quoted = { typical: input + size * usual.answer + usual.overhead, most: input + size * all + worstOverhead }
    const fusions = isWhole ? (self > 0 ? 2 : 1) : 1
    add(sums.typical, mostExpensive, { times: fusions, inputTokens: quoted.typical, outputTokens: usual.analysis })
    add(sums.typical, mostExpensive, {
      times: isWhole ? fusions + 1 : 1,
      inputTokens: quoted.typical + usual.analysis,
      outputTokens: usual.answer,
    })
    const analysis = outputLimit(mostExpensive, maxAnalysisTokens)
    add(sums.most, mostExpensive, {
      times: fusions * mostJudgeCalls(settings),
      inputTokens: quoted.most + analysis,
      outputTokens: analysis,
    })
    const writing = conversationOf(question).sampling.maxOutputTokens ?? 0
    // Each placebo and the fusion without analysis may need a writer if no answer can be sent unchanged.
    add(sums.most, mostExpensive, {
      times: isWhole ? fusions + 4 : 1,
      inputTokens: quoted.most + analysis,
      outputTokens: writing,
    })
    if (!isWhole) continue
    add(sums.typical, mostExpensive, {
      times: self + usualSamples,
      inputTokens: input + usual.overhead,
      outputTokens: usual.answer,
    })
    add(sums.most, mostExpensive, {
      times: self,
      inputTokens: input + worstOverhead,
      outputTokens: longest(mostExpensive),
    })
    add(sums.most, mostExpensive, { times: maxSamples, inputTokens: input, outputTokens: writing })
  }
  return sums
}
