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
  const drawn = (from: readonly number[]): number =>
    mean(from.map(() => from[Math.floor(Math.random() * from.length)]!))
  const ratios = Array.from({ length: resamples }, () => drawn(values) / drawn(reference))
  const outside = (1 - coveredShare) / 2
  return [quantile(ratios, outside), quantile(ratios, 1 - outside)]
}

/** One ratio for each round in which both were measured, so that a slow minute of the machine affects both equally. */
export function pairedRatios(values: readonly number[], reference: readonly number[]): number[] {
  const rounds = Math.min(values.length, reference.length)
  return Array.from({ length: rounds }, (_, round) => values[round]! / reference[round]!)
}
