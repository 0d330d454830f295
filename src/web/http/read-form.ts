import { PageError } from './page-error.ts'

/** Ten times the longest text an operator can enter. */
const maxFormBytes = 64 * 1024
/** Largest webhook body (contract 26.6). */
export const maxWebhookBytes = 1024 * 1024

/** Reads a URL-encoded form. @throws PageError if it has another type or is too large */
export async function readForm(request: Request): Promise<URLSearchParams> {
  const type = (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/x-www-form-urlencoded') throw new PageError('wrong_type')
  return new URLSearchParams(Buffer.from(await readBytes(request, maxFormBytes)).toString('utf8'))
}

/** Reads the raw body. @throws PageError if it is larger than `maxBytes` */
export async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw new PageError('too_large')
  if (request.body === null) return new Uint8Array()
  for await (const chunk of request.body) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new PageError('too_large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
