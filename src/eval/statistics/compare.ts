import { mcnemarExact, type Interval } from './binomial.ts'
import { bootstrapMean } from './bootstrap.ts'

/** Normal deviates for two-sided 5 % and a power of 80 %. */
const errorDeviate = 1.959964
const powerDeviate = 0.841621
const level = 0.05

type ComparisonVerdict = 'better' | 'worse' | 'no difference shown'

/** Two arms on the same questions. `gain` is the share of the first minus that of the second. */
export interface Comparison {
  readonly questions: number
  readonly gain: number
  /** The 95 % interval of the gain, by paired bootstrap. */
  readonly interval: Interval
  /** Questions that only the first arm answered right, and only the second. */
  readonly gained: number
  readonly lost: number
  /** McNemar's exact test, two-sided. */
  readonly p: number
  readonly verdict: ComparisonVerdict
}

/**
 * Compares pairs of arms. A difference is reported only if the paired interval excludes zero and McNemar's test, with
 * Holm's correction for the number of pairs, agrees. Without any true difference, at most one in twenty runs reports
 * one (contract 34.2).
 */
export function compareAll(
  pairs: readonly (readonly [first: readonly boolean[], second: readonly boolean[]])[],
): Comparison[] {
  const plain = pairs.map(([first, second]) => compareOne(first, second))
  const accepted = holm(plain.map(({ p }) => p))
  return plain.map((comparison, index) => {
    const { low, high } = comparison.interval
    const isShown = accepted[index]! && (low > 0 || high < 0)
    const verdict = !isShown ? 'no difference shown' : comparison.gain > 0 ? 'better' : 'worse'
    return { ...comparison, verdict }
  })
}

function compareOne(first: readonly boolean[], second: readonly boolean[]): Omit<Comparison, 'verdict'> {
  if (first.length !== second.length) throw new Error('arms are compared on the same questions')
  const differences = first.map((right, index) => Number(right) - Number(second[index]))
  const gained = differences.filter((difference) => difference > 0).length
  const lost = differences.filter((difference) => difference < 0).length
  const questions = differences.length
  return {
    questions,
    gain: questions === 0 ? 0 : (gained - lost) / questions,
    interval: bootstrapMean(differences),
    gained,
    lost,
    p: mcnemarExact(gained, lost),
  }
}

/** Which of several tests are significant at 5 % together (Holm). */
export function holm(ps: readonly number[]): boolean[] {
  const accepted = ps.map(() => false)
  const order = ps.map((p, index) => ({ p, index })).sort((a, b) => a.p - b.p)
  for (const [rank, { p, index }] of order.entries()) {
    if (p > level / (ps.length - rank)) break
    accepted[index] = true
  }
  return accepted
}

/**
 * The number of questions after which four of five runs would show a true gain of this size, if arms differ on this
 * share of the questions.
 */
export function questionsNeeded(gain: number, discordant: number): number {
  const share = Math.min(1, Math.max(discordant, Math.abs(gain)))
  const spread = Math.sqrt(Math.max(0, share - gain * gain))
  return Math.ceil(((errorDeviate * Math.sqrt(share) + powerDeviate * spread) / gain) ** 2)
}
