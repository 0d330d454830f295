import type { Interval } from '../../domain/replay.ts'
import type { RunOutcome } from './replay-run.ts'

/** Resamples for one interval. */
const resamples = 400
/** The interval leaves out this share at each end. */
const tail = 0.025
/** If nothing was observed in n requests, its true share can be up to about this divided by n, with 95% confidence. */
const ruleOfThree = 3

/** A figure of some outcomes; NaN if there is none to compute it from. */
export type FigureOf = (outcomes: readonly RunOutcome[]) => number

/** One request under both policies. */
export interface OutcomePair {
  readonly configured: RunOutcome
  readonly policy: RunOutcome
}

/**
 * The 95% intervals of the differences between two policies, in the order of the figures. Resamples whole blocks of
 * time, because requests that come together share good and bad times, and whole runs, because each gives other results
 * to calls that were not made. `runs` has the pairs of each run, in blocks.
 */
export function changeIntervals(
  runs: readonly (readonly (readonly OutcomePair[])[])[],
  figures: readonly FigureOf[],
  random: () => number,
): readonly (Interval | undefined)[] {
  const changesOf = (pairs: readonly OutcomePair[]): readonly number[] => {
    const [policy, configured] = [pairs.map((pair) => pair.policy), pairs.map((pair) => pair.configured)]
    return figures.map((figureOf) => figureOf(policy) - figureOf(configured))
  }
  const estimates = runs.map((blocks) => changesOf(blocks.flat()))
  const drawn = Array.from({ length: resamples }, () => {
    const blocks = runs[Math.floor(random() * runs.length)]!
    return changesOf(blocks.flatMap(() => blocks[Math.floor(random() * blocks.length)]!))
  })
  return figures.map((_, index) => {
    const of = (changes: readonly (readonly number[])[]): number[] => changes.map((change) => change[index]!)
    return intervalOf(mean(of(estimates)), of(drawn))
  })
}

function intervalOf(estimate: number, drawn: readonly number[]): Interval | undefined {
  if (!Number.isFinite(estimate)) return undefined
  const sorted = drawn.filter((value) => Number.isFinite(value)).toSorted((a, b) => a - b)
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? estimate
  return { estimate, low: Math.min(estimate, at(tail)), high: Math.max(estimate, at(1 - tail)) }
}

/** The same for shares of requests: an interval never says that a rare failure cannot happen. */
export function atLeastRare({ estimate, low, high }: Interval, requests: number): Interval {
  const least = ruleOfThree / requests
  return { estimate, low: Math.min(low, estimate - least), high: Math.max(high, estimate + least) }
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** The value that this share of the values stays below; NaN if there is none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
