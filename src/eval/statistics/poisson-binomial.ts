/**
 * The exact two-sided probability of this many hits, or of anything as unlikely, if each trial has its own probability.
 */
export function poissonBinomialTest(hits: number, chances: readonly number[]): number {
  // The probability of each number of hits, after each trial.
  let odds = [1]
  for (const chance of chances) {
    const next = Array.from({ length: odds.length + 1 }, () => 0)
    for (const [count, odd] of odds.entries()) {
      next[count]! += odd * (1 - chance)
      next[count + 1]! += odd * chance
    }
    odds = next
  }
  const sum = (part: readonly number[]): number => part.reduce((total, odd) => total + odd, 0)
  return Math.min(1, 2 * Math.min(sum(odds.slice(0, hits + 1)), sum(odds.slice(hits))))
}
