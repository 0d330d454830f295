import { seededRandom } from '../../gateway/fusion/engine/seeded-random.ts'
import type { Interval } from './binomial.ts'

const rounds = 4_000
/** A fixed seed, so that the same values always have the same interval. */
const seed = 20_261_121

/** The bootstrap interval of a mean over questions. For paired differences, the paired bootstrap. */
export function bootstrapMean(values: readonly number[], confidence = 0.95): Interval {
  const count = values.length
  if (count === 0) return { low: -1, high: 1 }
  const random = seededRandom(seed)
  const means = new Float64Array(rounds)
  for (let round = 0; round < rounds; round++) {
    let sum = 0
    for (let drawn = 0; drawn < count; drawn++) sum += values[Math.floor(random() * count)]!
    means[round] = sum / count
  }
  means.sort()
  const outside = (1 - confidence) / 2
  const at = (share: number): number => means[Math.min(rounds - 1, Math.max(0, Math.round(share * (rounds - 1))))]!
  return { low: at(outside), high: at(1 - outside) }
}
