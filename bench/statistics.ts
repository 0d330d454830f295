/** The median; for an even count, the mean of the two middle values. @throws Error if there are no values */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The interpolated quantile; `share` is between 0 and 1. @throws Error if there are no values */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = share * (sorted.length - 1)
  const below = sorted[Math.floor(place)]
  const above = sorted[Math.ceil(place)]
  if (below === undefined || above === undefined) throw new Error('A quantile of no values was asked for.')
  return below + (above - below) * (place - Math.floor(place))
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

const resamples = 4000
const coveredShare = 0.95

/** The range that contains 95 % of the ratios of means when the values of both are drawn again (bootstrap). */
export function bootstrapRange(values: readonly number[], reference: readonly number[]): [number, number] {
  return rangeOf(() => mean(draw(values)) / mean(draw(reference)))
}

function rangeOf(ratio: () => number): [number, number] {
  const ratios = Array.from({ length: resamples }, ratio)
  const outside = (1 - coveredShare) / 2
  return [quantile(ratios, outside), quantile(ratios, 1 - outside)]
}

function draw<T>(from: readonly T[]): T[] {
  return from.map(() => from[Math.floor(Math.random() * from.length)]!)
}

/** What was measured in one round, for so many answers. */
export interface Sum {
  readonly amount: number
  readonly count: number
}

/**
 * The ratio of all that was measured per answer in rounds that several processes took in turns, and the range that contains
 * 95 % of the ratios when the processes and then the rounds are drawn again.
 */
export function ratioOfSums(processes: readonly (readonly Sum[])[], reference: readonly (readonly Sum[])[]) {
  const rounds = [...processes[0]!.keys()]
  const ratioIn = (pairs: readonly number[], drawn: readonly number[]): number =>
    perAnswer(pairs, drawn, processes) / perAnswer(pairs, drawn, reference)
  const [from, to] = rangeOf(() => ratioIn(draw([...processes.keys()]), draw(rounds)))
  return { ratio: ratioIn([...processes.keys()], rounds), from, to }
}

function perAnswer(own: readonly number[], rounds: readonly number[], processes: readonly (readonly Sum[])[]): number {
  let [amount, count] = [0, 0]
  for (const process of own) {
    for (const round of rounds) {
      const sum = processes[process]![round]!
      amount += sum.amount
      count += sum.count
    }
  }
  return amount / count
}

/** The same items in random order. */
export function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((item) => ({ item, place: Math.random() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ item }) => item)
}

/** One ratio for each round in which both were measured, so that a slow minute of the machine affects both equally. */
export function pairedRatios(values: readonly number[], reference: readonly number[]): number[] {
  const rounds = Math.min(values.length, reference.length)
  return Array.from({ length: rounds }, (_, round) => values[round]! / reference[round]!)
}
