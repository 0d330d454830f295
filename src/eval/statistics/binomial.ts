/** How often to halve an interval: more than doubles can resolve. */
const halvings = 60

/** The ends of an interval. */
export interface Interval {
  readonly low: number
  readonly high: number
}

/**
 * The exact interval of a share after `hits` of `trials` (Clopper and Pearson), which contains the true share at least
 * this often.
 */
export function clopperPearson(hits: number, trials: number, confidence = 0.95): Interval {
  if (trials === 0) return { low: 0, high: 1 }
  const outside = (1 - confidence) / 2
  const low = hits === 0 ? 0 : solve((share) => 1 - binomialUpTo(hits - 1, trials, share) >= outside)
  const high = hits === trials ? 1 : solve((share) => binomialUpTo(hits, trials, share) <= outside)
  return { low, high }
}

/**
 * McNemar's exact test, two-sided: the probability of a split at least this uneven among the questions on which two
 * arms differ, if neither is better. `gained`: right only in the first arm; `lost`: only in the second.
 */
export function mcnemarExact(gained: number, lost: number): number {
  const trials = gained + lost
  return trials === 0 ? 1 : Math.min(1, 2 * binomialUpTo(Math.min(gained, lost), trials, 0.5))
}

/** The probability of at most `hits` of `trials`. */
function binomialUpTo(hits: number, trials: number, share: number): number {
  if (share <= 0) return 1
  if (share >= 1) return hits >= trials ? 1 : 0
  const [yes, no] = [Math.log(share), Math.log1p(-share)]
  let logWays = 0
  let sum = 0
  for (let count = 0; count <= hits; count++) {
    sum += Math.exp(logWays + count * yes + (trials - count) * no)
    logWays += Math.log((trials - count) / (count + 1))
  }
  return Math.min(1, sum)
}

/** The smallest share from 0 to 1 at which `isReached`, which must be monotonic. */
function solve(isReached: (share: number) => boolean): number {
  let [low, high] = [0, 1]
  for (let step = 0; step < halvings; step++) {
    const middle = (low + high) / 2
    if (isReached(middle)) high = middle
    else low = middle
  }
  return high
}
