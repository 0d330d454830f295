import type { Transform } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { ServiceError } from '../domain/errors.ts'

/**
 * Beyond this size, a body's compression ratio is limited: text compresses 3 to 30 times. Small, so that a
 * decompression bomb costs no more than an ordinary request.
 */
const ratioFromBytes = 64 * 1024
const maxRatio = 100
/** The largest zstd window that a body may require, as a power of two: 8 MiB (RFC 9659). */
const zstdWindowLog = 23

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  deflate: () => createInflate(),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLog } }),
}

/** Error text for a body that does not match its `Content-Encoding`. */
export const undecodable =
  'The body could not be decompressed with its Content-Encoding. Correct the encoding, or send the body uncompressed.'

/**
 * The decompressor for a body, or undefined if it is not compressed (contract 2.25).
 * @throws ServiceError `unsupported_media_type` for other or multiple encodings
 */
export function decoderFor(contentEncoding: string | undefined): Transform | undefined {
  const name = contentEncoding?.trim().toLowerCase() ?? ''
  if (name === '' || name === 'identity') return undefined
  if (!Object.hasOwn(decoders, name)) throw new ServiceError('unsupported_media_type')
  return decoders[name]!()
}

/** Whether a body expanded more than any text does, which suggests a decompression bomb (contract 29.11). */
export function isOverRatio(bytes: number, receivedBytes: number): boolean {
  return bytes > ratioFromBytes && bytes > receivedBytes * maxRatio
}

/** The error for such a body. */
export function overRatio(): ServiceError {
  const problem = `The body is compressed more than ${maxRatio} to 1. Send it uncompressed.`
  return new ServiceError('invalid_request', { words: { problem } })
}
