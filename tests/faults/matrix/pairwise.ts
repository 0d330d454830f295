/**
 * The smallest sample that a greedy search finds in which every pair of coordinates that occurs together in a cell
 * occurs together at least once. The same cells give the same sample.
 */
export function pairwise<Cell>(cells: readonly Cell[], coordinatesOf: (cell: Cell) => readonly string[]): Cell[] {
  const waiting = cells.map((cell, index) => ({ cell, index, pairs: pairsOf(coordinatesOf(cell)) }))
  const most = Math.max(0, ...waiting.map(({ pairs }) => pairs.length))
  // Neighbors share most of their coordinates, so go through the cells in strides.
  waiting.sort((a, b) => scatter(a.index) - scatter(b.index))
  const covered = new Set<string>()
  const sample: typeof waiting = []
  for (let atLeast = most; atLeast > 0; atLeast--) {
    for (const one of waiting) {
      let fresh = 0
      for (const pair of one.pairs) if (!covered.has(pair)) fresh += 1
      if (fresh < atLeast) continue
      for (const pair of one.pairs) covered.add(pair)
      sample.push(one)
    }
  }
  return sample.sort((a, b) => a.index - b.index).map(({ cell }) => cell)
}

/** A fixed permutation of the first 2^32 numbers. */
function scatter(index: number): number {
  return Math.imul(index, 2_654_435_761) >>> 0
}

function pairsOf(coordinates: readonly string[]): string[] {
  const pairs: string[] = []
  for (const [first, one] of coordinates.entries())
    for (let second = first + 1; second < coordinates.length; second++)
      pairs.push(`${first}:${one}+${second}:${coordinates[second]}`)
  return pairs
}
