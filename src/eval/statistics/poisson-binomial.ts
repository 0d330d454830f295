/**
 * The exact probability, both sides, of so many hits or of something as unlikely, where each trial is drawn by lot with a
 * chance of its own.
 */
export function poissonBinomialTest(hits: number, chances: readonly number[]): number {
  // After each trial, how probable each number of hits is.
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
