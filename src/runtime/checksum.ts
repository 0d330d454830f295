import { crc32 } from 'node:zlib'

/**
 * The CRC-32 of bytes, or of a text as UTF-8, from 0 to 2³² − 1. With the checksum of what comes before them, that of both
 * together. It notices accidents, not attacks.
 */
export const checksum: (data: Uint8Array | string, before?: number) => number = crc32
