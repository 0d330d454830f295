import { crc32 } from 'node:zlib'

/**
 * The CRC-32 of bytes, or of a text as UTF-8, from 0 to 2³² − 1. With the checksum of what comes before them, that of both
 * together. It notices accidents, not attacks.
 */
export const checksum: (data: Uint8Array | string, before?: number) => number = crc32

const prime = 0x01000193

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
