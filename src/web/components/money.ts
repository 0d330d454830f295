import type { Price } from '../../domain/billing.ts'

/** `$20 a month`, `¥2,000 every 3 months`. */
export function writePrice({ currency, minorUnits, interval, intervalCount }: Price): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency: currency.toUpperCase() })
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2
  const amount = format.format(minorUnits / 10 ** digits)
  return `${amount} ${intervalCount === 1 ? `a ${interval}` : `every ${intervalCount} ${interval}s`}`
}
