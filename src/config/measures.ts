const durationShape = /^(\d{1,9})(ms|s|m|h|d)$/
const sizeShape = /^(\d{1,9})(B|KiB|MiB|GiB)?$/
const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const unitBytes = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const

/** Parses a duration such as `500ms`, `2s`, `2m`, `24h`, or `90d` into milliseconds; undefined if invalid. */
export function readDurationMs(text: string): number | undefined {
  const match = durationShape.exec(text)
  return match === null ? undefined : Number(match[1]) * unitMs[match[2] as keyof typeof unitMs]
}

/** Parses a size such as `16MiB`, `64KiB`, or a plain number of bytes; undefined if invalid. */
export function readSizeBytes(text: string): number | undefined {
  const match = sizeShape.exec(text)
  return match === null ? undefined : Number(match[1]) * unitBytes[(match[2] ?? 'B') as keyof typeof unitBytes]
}

/** Formats milliseconds in the largest unit that divides them evenly. */
export function writeDuration(ms: number): string {
  return writeMeasure(ms, unitMs)
}

/** Formats bytes in the largest unit that divides them evenly. */
export function writeSize(bytes: number): string {
  return writeMeasure(bytes, unitBytes)
}

function writeMeasure(value: number, units: Readonly<Record<string, number>>): string {
  let best = ''
  for (const [unit, size] of Object.entries(units)) {
    if (best === '' || (value > 0 && value % size === 0)) best = `${value / size}${unit}`
  }
  return best
}
