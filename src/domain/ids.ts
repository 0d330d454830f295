import type { RandomBytes } from './random.ts'

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Writes `length` characters drawn evenly from the 62 letters and digits, by rejection sampling. */
export function randomBase62(length: number, random: RandomBytes): string {
  let text = ''
  while (text.length < length) {
    for (const byte of random(length - text.length)) {
      if (byte < 248) text += alphabet[byte % 62]
    }
  }
  return text
}

/** Writes a whole number in base62, padded with zeros to `width`, most significant digit first. */
export function toBase62(value: number, width: number): string {
  let text = ''
  let rest = value
  for (let digit = 0; digit < width; digit++) {
    text = alphabet[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}

const timeWidth = 8
const countWidth = 3
const tailWidth = 13
const countLimit = 62 ** countWidth

/** Mints ids that sort by time: prefix, 8 characters of milliseconds, 3 of a counter, 13 random (`req_01AbC…`, 28 characters). */
export function idMinter(prefix: string, nowMs: () => number, random: RandomBytes): () => string {
  let count = 0
  return () => {
    count = (count + 1) % countLimit
    return `${prefix}${toBase62(Math.floor(nowMs()), timeWidth)}${toBase62(count, countWidth)}${randomBase62(tailWidth, random)}`
  }
}

/** The lowest id that `idMinter` can have minted at `timeMs`, for reading a range of time. */
export function lowestIdAt(prefix: string, timeMs: number): string {
  return prefix + toBase62(Math.max(0, Math.floor(timeMs)), timeWidth)
}
