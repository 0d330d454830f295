import { hash } from 'node:crypto'
import type { RandomBytes } from './random.ts'

const alphabet = Buffer.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 'latin1')
/** Bytes from this value on would make the first characters more likely than the last ones. */
const unevenFrom = 248

/** Random characters, uniformly drawn from the 62 letters and digits by rejection sampling. */
export function randomBase62(length: number, random: RandomBytes): string {
  const text = Buffer.alloc(length)
  writeRandom(text, 0, random)
  return text.toString('latin1')
}

/** A whole number in base62, padded with zeros to `width`, most significant digit first. */
export function toBase62(value: number, width: number): string {
  const text = Buffer.alloc(width)
  writeNumber(text, 0, width, value)
  return text.toString('latin1')
}

const timeWidth = 8
const countWidth = 3
const tailWidth = 13
const countLimit = 62 ** countWidth

/**
 * Creates ids that sort by time: the prefix, 8 characters of milliseconds, 3 of a counter, 13 random (`req_01AbC…`, 28
 * characters).
 */
export function idMinter(prefix: string, nowMs: () => number, random: RandomBytes): () => string {
  const timeAt = prefix.length
  const countAt = timeAt + timeWidth
  const tailAt = countAt + countWidth
  // One buffer for all ids: joining single characters costs ten times as much.
  const text = Buffer.alloc(tailAt + tailWidth)
  text.write(prefix, 'latin1')
  let count = 0
  return () => {
    count = (count + 1) % countLimit
    writeNumber(text, timeAt, timeWidth, Math.floor(nowMs()))
    writeNumber(text, countAt, countWidth, count)
    writeRandom(text, tailAt, random)
    return text.toString('latin1')
  }
}

/** Fills `into` from `from` to its end. */
function writeRandom(into: Buffer, from: number, random: RandomBytes): void {
  let at = from
  while (at < into.length) {
    for (const byte of random(into.length - at)) {
      if (byte < unevenFrom) into[at++] = alphabet[byte % 62]!
    }
  }
}

function writeNumber(into: Buffer, from: number, width: number, value: number): void {
  let rest = value
  for (let at = from + width - 1; at >= from; at -= 1) {
    into[at] = alphabet[rest % 62]!
    rest = Math.floor(rest / 62)
  }
}

/**
 * The UUID for an id, always the same one, for peers that accept only UUIDs. A version 8 UUID (RFC 9562) from the id's
 * SHA-256, so it does not reveal the id.
 */
export function uuidOf(id: string): string {
  const hex = hash('sha256', id, 'hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The lowest id that `idMinter` can create at `timeMs`, to read a range of time. */
export function lowestIdAt(prefix: string, timeMs: number): string {
  return prefix + toBase62(Math.max(0, Math.floor(timeMs)), timeWidth)
}
