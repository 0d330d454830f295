const durationShape = /^(\d{1,9})(ms|s|m|h|d)$/
const sizeShape = /^(\d{1,9})(B|KiB|MiB|GiB)?$/
const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const unitBytes = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const

/** Reads a duration like `500ms`, `2s`, `2m`, `24h` or `90d` as milliseconds; undefined where it is none. */
export function readDurationMs(text: string): number | undefined {
  const match = durationShape.exec(text)
  return match === null ? undefined : Number(match[1]) * unitMs[match[2] as keyof typeof unitMs]
}

/** Reads a size like `16MiB`, `64KiB` or a bare number of bytes; undefined where it is none. */
export function readSizeBytes(text: string): number | undefined {
  const match = sizeShape.exec(text)
  return match === null ? undefined : Number(match[1]) * unitBytes[(match[2] ?? 'B') as keyof typeof unitBytes]
}

/** Writes milliseconds in the largest unit that takes them whole. */
export function writeDuration(ms: number): string {
  return writeMeasure(ms, unitMs)
}

/** Writes bytes in the largest unit that takes them whole. */
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
