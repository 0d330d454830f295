import type { SimulatedJudge } from './closed-fusions.ts'
import { normal } from './statistics.ts'

/** What is assumed of a judge, in standard deviations of the noise in its scores. That is what nobody can know of a real one. */
export interface JudgeKnobs {
  /** How far it puts a right answer above a wrong one, of questions that it could solve itself and of others. */
  readonly discrimination: number
  readonly discriminationElsewhere: number
  /** Times the logarithm of the families that say the same. */
  readonly support: number
  /** For the one that is shown first, and for the longest. */
  readonly position: number
  readonly verbosity: number
  readonly noise: number
  /** How often its reply cannot be read; asked again, too. */
  readonly corrupt: number
}

/** Beside what they can tell, all judges are alike: agreement counts little, as they are told. */
const rest = { support: 0.5, position: 0.1, verbosity: 0.2, noise: 1, corrupt: 0.02 }

/**
 * Set before anything was measured, by how often the better of two answers is put first: a judge that cannot tell, one
 * that does so in 75 of 100 cases where it could solve the question and in 52 elsewhere, in 95 and 65, and in 99 and 75.
 */
export const assumedJudges = {
  blind: { discrimination: 0, discriminationElsewhere: 0, ...rest },
  weak: { discrimination: 0.95, discriminationElsewhere: 0.07, ...rest },
  default: { discrimination: 2.33, discriminationElsewhere: 0.54, ...rest },
  strong: { discrimination: 3.29, discriminationElsewhere: 0.95, ...rest },
} satisfies Readonly<Record<string, JudgeKnobs>>

/** Of the scale from 0 to 10: what it gives to the one that it holds to be the best, and how much one deviation is. */
const bestScore = 9
const pointsPerDeviation = 1.5

/** The same, but that they follow the majority nearly always where they cannot tell. */
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
