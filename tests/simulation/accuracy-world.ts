import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import { normal, probit } from './statistics.ts'

/**
 * Assumptions about closed questions: how often models are right, and how their mistakes correlate. Not measured from
 * real models.
 */
export interface World {
  /** For each member, how often it is right, and its family. */
  readonly members: readonly { readonly right: number; readonly family: number }[]
  /** How often the judge could solve a question itself; it has its own family. */
  readonly judgeRight: number
  /** Variance of the ability that all models share, and of that which a family shares in addition. */
  readonly sharedByAll: number
  readonly sharedByFamily: number
  /** Share of questions that all members get wrong, independently of the correlation. */
  readonly allWrong: number
  /** The number of wrong answers, and how often a wrong member gives the popular one. */
  readonly distractors: number
  readonly popular: number
}

/** Three strong models of different families. */
export const threeDiverse: World = {
  members: [0.78, 0.76, 0.74].map((right, family) => ({ right, family })),
  judgeRight: 0.78,
  sharedByAll: 0.55,
  sharedByFamily: 0.15,
  allWrong: 0.02,
  distractors: 8,
  popular: 0.72,
}

/** One question: answer 0 is right, and each other number is a wrong answer. */
export interface Item {
  readonly answers: readonly number[]
  readonly judgeSolves: boolean
}

/** The world's question with that number, the same for all members and judges. */
export function drawItem(world: World, number: number): Item {
  const random = seededRandom(number * 2_654_435_761)
  const isLost = random() < world.allWrong
  const common = normal(random)
  const popular = 1 + Math.floor(random() * world.distractors)
  const families = new Map<number, number>()
  const { sharedByAll, sharedByFamily } = world
  const abilityOf = (family: number): number => {
    const known = families.get(family) ?? normal(random)
    families.set(family, known)
    const own = Math.sqrt(1 - sharedByAll - sharedByFamily) * normal(random)
    return Math.sqrt(sharedByAll) * common + Math.sqrt(sharedByFamily) * known + own
  }
  const answers = world.members.map(({ right, family }) => {
    const ability = abilityOf(family)
    const other = 1 + Math.floor(random() * world.distractors)
    const wrong = random() < world.popular ? popular : other
    // Compensate for the questions that all get wrong, so that each member is right as often as configured.
    return !isLost && ability < probit(right / (1 - world.allWrong)) ? 0 : wrong
  })
  return { answers, judgeSolves: !isLost && abilityOf(-1) < probit(world.judgeRight / (1 - world.allWrong)) }
}

/** How the mistakes of a world's members correlate. */
export interface Calibration {
  /** How often two wrong members give the same answer. */
  readonly sameWrong: number
  /** The number of independent members with the same total error: n / (1 + (n - 1) · mean correlation). */
  readonly effectiveMembers: number
  /** How often no member is right. */
  readonly allWrong: number
}

export function calibrate(world: World, items: number): Calibration {
  const count = world.members.length
  const wrong = Array.from({ length: count }, () => 0)
  const both = Array.from({ length: count }, () => Array.from({ length: count }, () => 0))
  let [pairsWrong, pairsSame, noneRight] = [0, 0, 0]
  for (let number = 1; number <= items; number++) {
    const { answers } = drawItem(world, number)
    if (!answers.includes(0)) noneRight += 1
    for (let a = 0; a < count; a++) {
      if (answers[a] === 0) continue
      wrong[a]! += 1
      for (let b = 0; b < a; b++) {
        if (answers[b] === 0) continue
        both[a]![b]! += 1
        pairsWrong += 1
        if (answers[a] === answers[b]) pairsSame += 1
      }
    }
  }
  let correlations = 0
  for (let a = 0; a < count; a++) {
    for (let b = 0; b < a; b++) {
      const [p, q] = [wrong[a]! / items, wrong[b]! / items]
      correlations += (both[a]![b]! / items - p * q) / Math.sqrt(p * (1 - p) * q * (1 - q))
    }
  }
  const mean = correlations / ((count * (count - 1)) / 2)
  return {
    sameWrong: pairsSame / pairsWrong,
    effectiveMembers: count / (1 + (count - 1) * mean),
    allWrong: noneRight / items,
  }
}
