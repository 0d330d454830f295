/**
 * Amounts of money are integer picodollars (10⁻¹² US dollars) as a `bigint`, so that sums are exact (contract 42.1). In
 * JSON and in records they are decimal strings.
 */
export type Picodollars = bigint

const picodollarsPerDollar = 1_000_000_000_000n
const picodollarsPerNanodollar = 1_000n
/** Smaller amounts are not written for people: 0.0001 US dollars. */
const smallest = 100_000_000n
/** Longer texts are no amount: a hundred quadrillion dollars. */
const maxDigits = 30

/** The amount that a record or an answer of ours stores; undefined if it is not one. */
export function readAmount(text: unknown): Picodollars | undefined {
  return typeof text === 'string' && text.length <= maxDigits && /^\d+$/.test(text) ? BigInt(text) : undefined
}

/**
 * Converts dollars that a provider or an operator wrote as a decimal number, exact to a picodollar; the rest is rounded
 * up. Undefined if it is not an amount. @param mostDollars the highest plausible amount
 */
export function fromDollars(dollars: unknown, mostDollars = 1_000_000): Picodollars | undefined {
  if (typeof dollars !== 'number' || !(dollars >= 0 && dollars <= mostDollars)) return undefined
  // Doubles have 15 reliable decimal digits; the digits that a provider wrote come back with `toPrecision`.
  const [mantissa = '', exponent = '0'] = dollars.toExponential(14).split('e')
  const digits = BigInt(mantissa.replace('.', ''))
  const shift = Number(exponent) - 14 + 12
  if (shift >= 0) return digits * 10n ** BigInt(shift)
  const divisor = 10n ** BigInt(-shift)
  return (digits + divisor - 1n) / divisor
}

/** A nanodollar is 10⁻⁹ US dollars. Rounded up. */
export function inNanodollars(amount: Picodollars): number {
  return Number((amount + picodollarsPerNanodollar - 1n) / picodollarsPerNanodollar)
}

export function fromNanodollars(nanodollars: number): Picodollars {
  return BigInt(nanodollars) * picodollarsPerNanodollar
}

/** An amount in US dollars as a number, to show it or compare it with other measurements; not for sums. */
export function inDollars(amount: Picodollars): number {
  return Number(amount) / Number(picodollarsPerDollar)
}

/** Dollars as a decimal text without rounding, such as `0.000123`: for CSV, JSON, and headers. */
export function writeDollars(amount: Picodollars): string {
  if (amount < 0n) return `-${writeDollars(-amount)}`
  const whole = amount / picodollarsPerDollar
  const fraction = (amount % picodollarsPerDollar).toString().padStart(12, '0')
  let digits = fraction.length
  while (digits > 0 && fraction[digits - 1] === '0') digits--
  return digits === 0 ? `${whole}` : `${whole}.${fraction.slice(0, digits)}`
}

/** The amount that `writeDollars` wrote; undefined if it is none. Negative for what caching cost more than it saved. */
export function readDollars(text: string): Picodollars | undefined {
  const found = /^(-?)(\d{1,18})(?:\.(\d{1,12}))?$/.exec(text)
  if (found === null) return undefined
  const [, sign, whole = '', fraction = ''] = found
  const amount = BigInt(whole) * picodollarsPerDollar + BigInt(fraction.padEnd(12, '0'))
  return sign === '-' ? -amount : amount
}

/**
 * An amount for people, such as `0.0312 USD`, with four decimals because single requests cost little. A number is in
 * dollars.
 */
export function writeUsd(amount: Picodollars | number): string {
  if (typeof amount === 'number') return writeUsd(fromDollars(amount) ?? 0n)
  if (amount < 0n) return `-${writeUsd(-amount)}`
  if (amount === 0n) return '0 USD'
  if (amount < smallest) return 'less than 0.0001 USD'
  const digits = amount < picodollarsPerDollar ? 4 : 2
  const unit = picodollarsPerDollar / 10n ** BigInt(digits)
  const rounded = (amount + unit / 2n) / unit
  const perDollar = 10n ** BigInt(digits)
  const [whole, decimals] = [rounded / perDollar, rounded % perDollar]
  return `${whole.toLocaleString('en')}.${decimals.toString().padStart(digits, '0')} USD`
}
