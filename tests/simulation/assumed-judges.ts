import type { SimulatedJudge } from './closed-fusions.ts'
import { normal } from './statistics.ts'

/** Assumptions about a judge, in standard deviations of the noise in its scores. A real judge's values are unknown. */
export interface JudgeKnobs {
  /**
   * The score difference between a right and a wrong answer, for questions that it could solve itself and for others.
   */
  readonly discrimination: number
  readonly discriminationElsewhere: number
  /** Multiplied by the logarithm of the number of families that agree. */
  readonly support: number
  /** The bonus of the first candidate shown, and of the longest. */
  readonly position: number
  readonly verbosity: number
  readonly noise: number
  /** How often its reply is unreadable, on the second try, too. */
  readonly corrupt: number
}

/** All judges differ only in their accuracy. They give agreement little weight, as their prompt says. */
const rest = { support: 0.5, position: 0.1, verbosity: 0.2, noise: 1, corrupt: 0.02 }

/**
 * Chosen before any measurement, by how often each judge ranks the better of two answers first. One cannot tell. The
 * others do so in 75, 95, and 99 of 100 cases if they could solve the question, and in 52, 65, and 75 otherwise.
 */
export const assumedJudges = {
  blind: { discrimination: 0, discriminationElsewhere: 0, ...rest },
  weak: { discrimination: 0.95, discriminationElsewhere: 0.07, ...rest },
  default: { discrimination: 2.33, discriminationElsewhere: 0.54, ...rest },
  strong: { discrimination: 3.29, discriminationElsewhere: 0.95, ...rest },
} satisfies Readonly<Record<string, JudgeKnobs>>

/** On the scale from 0 to 10: the score of its best candidate, and the size of one deviation. */
const bestScore = 9
const pointsPerDeviation = 1.5

/** The same judges, except that they nearly always follow the majority if they cannot tell. */
export const followingTheMajority = Object.fromEntries(
  Object.entries(assumedJudges).map(([name, knobs]): [string, JudgeKnobs] => [name, { ...knobs, support: 3 }]),
)

export function judgeOf(knobs: JudgeKnobs): SimulatedJudge {
  return (shown, { solves, random }) => {
    if (random() < knobs.corrupt) return undefined
    const longest = Math.max(...shown.map(({ text }) => text.length))
    const apart = solves ? knobs.discrimination : knobs.discriminationElsewhere
    const opinions = shown.map(
      ({ text, isRight, families }, place) =>
        (isRight ? apart : 0) +
        knobs.support * Math.log(families) +
        (place === 0 ? knobs.position : 0) +
        (text.length === longest ? knobs.verbosity : 0) +
        knobs.noise * normal(random),
    )
    const best = Math.max(...opinions)
    return opinions.map((opinion) => Math.max(0, Math.round(bestScore - pointsPerDeviation * (best - opinion))))
  }
}
