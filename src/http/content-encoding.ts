import type { Transform } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { ServiceError } from '../domain/errors.ts'

/**
 * Past this size a body may be at most so many times as large as it was sent: text compresses 3 to 30 times. It is small,
 * so that a bomb costs no more than an ordinary request.
 */
const ratioFromBytes = 64 * 1024
const maxRatio = 100
/** The largest window that a body compressed with zstd may ask for, as a power of two: 8 MiB (RFC 9659). */
const zstdWindowLog = 23

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  deflate: () => createInflate(),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLog } }),
}

/** The sentence for a body that is not what its `Content-Encoding` says. */
export const undecodable =
  'The body cannot be decompressed as its Content-Encoding says. Send it again, or uncompressed.'

/** What decompresses a body, or undefined where it is not compressed. @throws ServiceError `unsupported_media_type` for other encodings and for several */
export function decoderFor(contentEncoding: string | undefined): Transform | undefined {
  const name = contentEncoding?.trim().toLowerCase() ?? ''
  if (name === '' || name === 'identity') return undefined
  if (!Object.hasOwn(decoders, name)) throw new ServiceError('unsupported_media_type')
  return decoders[name]!()
}

/** Whether a body has grown more than any text does: it was made to cost us more than its sender (contract 29.11). */
export function isOverRatio(bytes: number, receivedBytes: number): boolean {
  return bytes > ratioFromBytes && bytes > receivedBytes * maxRatio
}

/** The refusal of such a body. */
export function overRatio(): ServiceError {
  const problem = `The body is compressed more than ${maxRatio} to 1. Send it uncompressed.`
  return new ServiceError('invalid_request', { words: { problem } })
}
