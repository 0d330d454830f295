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
  let writtenMs = Number.NaN
  return () => {
    count = (count + 1) % countLimit
    const timeMs = Math.floor(nowMs())
    if (timeMs !== writtenMs) writeNumber(text, timeAt, timeWidth, timeMs)
    writtenMs = timeMs
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

const hexDigits = Buffer.from('0123456789abcdef', 'latin1')
/** One buffer for all UUIDs. */
const uuidText = Buffer.from('00000000-0000-0000-0000-000000000000', 'latin1')
/** Steps after the last two characters, so that they change every bit. */
const lastSteps = 4

/**
 * The UUID for an id, always the same one, for peers that accept only UUIDs. A version 8 UUID (RFC 9562) from a hash of
 * the id. An id opens nothing, so the hash need not resist attacks; a cryptographic one costs ten times as much.
 */
export function uuidOf(id: string): string {
  let [a, b, c, d] = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344]
  const end = id.length + lastSteps * 2
  for (let at = 0; at < end; at += 2) {
    // Each step can be undone, so two ids that differ in one character never have the same state.
    a = Math.imul(a ^ (at < id.length ? id.charCodeAt(at) | (id.charCodeAt(at + 1) << 16) : d), 0x9e3779b1)
    b = Math.imul(b ^ (a >>> 13), 0x85ebca6b)
    c = Math.imul(c ^ (b >>> 15), 0xc2b2ae35)
    d = Math.imul(d ^ (c >>> 16), 0x27d4eb2f)
    a ^= d >>> 14
  }
  const version = (b & 0xffff0fff) | 0x8000
  const variant = (c & 0x3fffffff) | 0x80000000
  writeHex(0, a, 8)
  writeHex(9, version >>> 16, 4)
  writeHex(14, version, 4)
  writeHex(19, variant >>> 16, 4)
  writeHex(24, variant, 4)
  writeHex(28, d, 8)
  return uuidText.toString('latin1')
}

/** Writes the lowest digits of a value into the UUID. */
function writeHex(from: number, value: number, digits: number): void {
  let rest = value
  for (let at = from + digits - 1; at >= from; at -= 1) {
    uuidText[at] = hexDigits[rest & 0xf]!
    rest >>>= 4
  }
}

/** The lowest id that `idMinter` can create at `timeMs`, to read a range of time. */
export function lowestIdAt(prefix: string, timeMs: number): string {
  return prefix + toBase62(Math.max(0, Math.floor(timeMs)), timeWidth)
}
