import type { ArmResult } from './arms/arm-result.ts'
import { placeboIds } from './arms/placebo-judges.ts'
import type { QuestionOutcome } from './arms/question-run.ts'
import type { Evaluation } from './evaluation.ts'
import type { EvalMember } from './ports.ts'
import { familyIds, type FamilyId } from './questions/question.ts'
import { clopperPearson, type Interval } from './statistics/binomial.ts'
import { compareAll, questionsNeeded, type Comparison } from './statistics/compare.ts'
import { measureJointFailures, type JointFailures } from './statistics/joint-failures.ts'
import { poissonBinomialTest } from './statistics/poisson-binomial.ts'
import { quantile } from './statistics/quantile.ts'

/** The gain to detect, for which the required number of questions is reported. */
const wantedGain = 0.03
/** The significance level of each placebo: together they have one false alarm in twenty. */
const placeboLevel = 0.05 / placeboIds.length
/** Headrooms below this are too small to divide by. */
const leastHeadroom = 0.01
/** Added to both counts when estimating how often two arms differ, because few questions show few differences. */
const prior = 0.5

/** One arm, over all questions. */
export interface ArmFigures {
  readonly name: string
  readonly right: number
  readonly questions: number
  readonly accuracy: number
  /** The exact 95 % interval of the accuracy. */
  readonly interval: Interval
  /** Replies without an answer in the required form, or no reply at all. */
  readonly unanswered: number
  /** Mean cost per question in US dollars. */
  readonly usd: number
  readonly p50Ms?: number
  readonly p95Ms?: number
  /** The share of the headroom that it reaches: from the best member to a perfect choice among the panel. */
  readonly headroomCaptured?: number
}

export interface NamedComparison extends Comparison {
  readonly first: string
  readonly second: string
  /** The number of questions that would show a gain of 3 points in four of five runs. */
  readonly questionsForThreePoints: number
}

/** What a placebo judge gains over a random choice. It must be nothing. */
interface PlaceboFigures {
  readonly judge: string
  readonly lift: number
  /** Exact, two-sided, for random choices among the same candidates. */
  readonly p: number
  readonly isBeyondNoise: boolean
}

/** The complete report of an evaluation. Shares are from 0 to 1. */
export interface Report {
  readonly simulated: boolean
  readonly questions: number
  readonly injectedQuestions: number
  readonly best: string
  readonly pilotBest: string
  readonly arms: readonly ArmFigures[]
  readonly comparisons: readonly NamedComparison[]
  readonly failing: JointFailures
  readonly placebos: readonly PlaceboFigures[]
  /** How the fusion's replies were made, and the steps of degraded operation. */
  readonly modes: Readonly<Record<string, number>>
  readonly degraded: Readonly<Record<string, number>>
  readonly families: readonly {
    readonly family: FamilyId
    readonly questions: number
    readonly best: number
    readonly fusion: number
  }[]
  readonly injected: { readonly questions: number; readonly right: number; readonly obeyed: number }
  readonly meanSamples: number
  readonly spentUsd: number
  readonly calls: number
}

/** The figures of an evaluation; undefined if no question was answered by every arm. */
export function buildReport(evaluation: Evaluation, members: readonly EvalMember[]): Report | undefined {
  const { questions, injected } = evaluation
  if (questions.length === 0) return undefined
  const singles = members.map((_, index) => questions.map((one) => one.singles[index]!))
  const rightOf = (results: readonly ArmResult[]): boolean[] => results.map(({ isRight }) => isRight)
  const failing = measureJointFailures(singles.map(rightOf))
  const hits = singles.map((results) => rightOf(results).filter(Boolean).length)
  const bestPlace = hits.indexOf(Math.max(...hits))
  const best = singles[bestPlace]!
  const pick = (of: (one: QuestionOutcome) => ArmResult | undefined): ArmResult[] =>
    questions.flatMap((one) => of(one) ?? [])
  const fusion = pick((one) => one.fusion)
  const named: (readonly [name: string, results: readonly ArmResult[]])[] = [
    ...members.map((member, index) => [`alone: ${member.id}`, singles[index]!] as const),
    ['best member, asked plainly', pick((one) => one.plain)],
    ['self-consistency, equal cost', pick((one) => one.selfConsistency)],
    ['majority of members', pick((one) => one.majority)],
    ['self-panel fusion', pick((one) => one.selfPanel)],
    ['fusion', fusion],
    ['fusion without analysis', pick((one) => one.withoutAnalysis)],
    ...placeboIds.map((id) => [`placebo judge: ${id}`, pick((one) => one.placebos[id])] as const),
  ]
  const arms = named.filter(([, results]) => results.length > 0)
  const bestShare = hits[bestPlace]! / questions.length
  const headroom = 1 - failing.allWrong - bestShare
  const isMember = (name: string): boolean => name.startsWith('alone: ')
  const against = arms.filter(([name]) => comparedWith.has(name))
  const seconds = [['best member alone', best] as const, ...against]
  const compared = compareAll(seconds.map(([, results]) => [rightOf(fusion), rightOf(results)]))
  return {
    simulated: members.some(({ simulated }) => simulated),
    questions: questions.length,
    injectedQuestions: injected.length,
    best: members[bestPlace]!.id,
    pilotBest: evaluation.best.id,
    arms: arms.map(([name, results]) => {
      const figures = figuresOf(name, results)
      if (isMember(name) || headroom < leastHeadroom) return figures
      return { ...figures, headroomCaptured: (figures.accuracy - bestShare) / headroom }
    }),
    comparisons: compared.map((comparison, index) => ({
      ...comparison,
      first: 'fusion',
      second: seconds[index]![0],
      questionsForThreePoints: neededFor(comparison),
    })),
    failing,
    placebos: placeboIds.map((judge) => comparePlacebo(judge, questions)),
    modes: countOf(questions.map((one) => one.fusion.record.mode ?? 'none')),
    degraded: countOf(questions.flatMap((one) => one.fusion.record.degraded)),
    families: familyIds.flatMap((family) => {
      const indexes = [...questions.keys()].filter((index) => questions[index]!.question.family === family)
      const share = (results: readonly ArmResult[]): number =>
        meanOf(indexes.map((index) => Number(results[index]!.isRight)))
      return indexes.length === 0
        ? []
        : [{ family, questions: indexes.length, best: share(best), fusion: share(fusion) }]
    }),
    injected: {
      questions: injected.length,
      right: injected.filter((one) => one.fusion.isRight).length,
      obeyed: injected.filter(({ wasObeyed }) => wasObeyed).length,
    },
    meanSamples: meanOf(questions.map(({ samples }) => samples)),
    spentUsd: evaluation.spentUsd,
    calls: evaluation.calls,
  }
}

/** Whether a judge that ignores the answers' content chooses right ones more often than chance. */
function comparePlacebo(judge: (typeof placeboIds)[number], questions: readonly QuestionOutcome[]): PlaceboFigures {
  const chances = questions.map(({ placebos }) => placebos[judge].expectedRight)
  const chosenRight = questions.filter(({ placebos }) => placebos[judge].isRight).length
  const p = poissonBinomialTest(chosenRight, chances)
  return { judge, lift: chosenRight / questions.length - meanOf(chances), p, isBeyondNoise: p < placeboLevel }
}

/** The arms that the fusion is compared with, besides the best member. */
const comparedWith: ReadonlySet<string> = new Set([
  'best member, asked plainly',
  'self-consistency, equal cost',
  'majority of members',
  'self-panel fusion',
  'fusion without analysis',
])

function figuresOf(name: string, results: readonly ArmResult[]): ArmFigures {
  const right = results.filter(({ isRight }) => isRight).length
  const times = results.map(({ ms }) => ms)
  const [p50Ms, p95Ms] = [quantile(times, 0.5), quantile(times, 0.95)]
  return {
    name,
    right,
    questions: results.length,
    accuracy: right / results.length,
    interval: clopperPearson(right, results.length),
    unanswered: results.filter(({ hasAnswer }) => !hasAnswer).length,
    usd: meanOf(results.map(({ usd }) => usd)),
    ...(p50Ms === undefined ? {} : { p50Ms }),
    ...(p95Ms === undefined ? {} : { p95Ms }),
  }
}

function neededFor({ gained, lost, questions }: Comparison): number {
  return questionsNeeded(wantedGain, (gained + lost + prior) / (questions + prior))
}

function countOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

function meanOf(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}
