/** The value below which a share of the values lies, by the nearest rank. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))]!
}

/** A mean and half the width of its 99 % confidence interval. */
export function meanWithInterval(values: readonly number[]): { readonly mean: number; readonly half: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1)
  return { mean, half: 2.576 * Math.sqrt(variance / values.length) }
}

/** A normal deviate from two uniform ones (Box and Muller). */
export function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

const probits = new Map<number, number>()

/** The inverse of the normal distribution by bisection, which is precise enough here. */
export function probit(share: number): number {
  const known = probits.get(share)
  if (known !== undefined) return known
  let [low, high] = [-6, 6]
  for (let step = 0; step < 50; step++) {
    const middle = (low + high) / 2
    if (distribution(middle) < share) low = middle
    else high = middle
  }
  probits.set(share, low)
  return low
}

/** The normal distribution function (Abramowitz and Stegun 26.2.17, error below 1e-7). */
function distribution(z: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(z))
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)
  const tail =
    density * t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  return z < 0 ? tail : 1 - tail
}
