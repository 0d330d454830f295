import { crc32 } from 'node:zlib'

/**
 * The CRC-32 of bytes, or of a text as UTF-8, from 0 to 2³² − 1. With the checksum of what comes before them, that of both
 * together. It notices accidents, not attacks.
 */
export const checksum: (data: Uint8Array | string, before?: number) => number = crc32

const prime = 0x01000193
/** For shorter texts, a loop is faster than a native call. */
const shortText = 64

/**
 * A checksum of a text and its length, from 0 to 2³² − 1: FNV-1a of the UTF-16 units of a short text, otherwise CRC-32. The
 * length counts, so `ab` then `c` differs from `a` then `bc`. Continues `before`. It notices accidents, not attacks.
 */
export function textChecksum(text: string, before = 0): number {
  const { length } = text
  let sum = Math.imul(before ^ length, prime)
  if (length >= shortText) return checksum(text, sum >>> 0)
  for (let at = 0; at < length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), prime)
  return sum >>> 0
}

/**
 * A checksum (FNV-1a) of the length of a part of `bytes` and of some of its bytes: all of the last 16, then fewer and fewer,
 * about 160 of 150,000. It notices that something was added, removed, or changed at the end, but misses most bytes that
 * change in place. Continues `before`.
 */
export function sampledChecksum(bytes: Uint8Array, from: number, to: number, before = 0): number {
  let sum = before ^ (to - from)
  for (let at = to - 1; at >= from; at -= 1 + ((to - at) >> 4)) sum = Math.imul(sum ^ bytes[at]!, prime)
  return sum >>> 0
}
