import { PageRefusal } from './refusals.ts'

/** Forms are short: an operator's longest text fits ten times. */
const maxFormBytes = 64 * 1024
/** What another service sends us. */
export const maxWebhookBytes = 1024 * 1024

/** The fields of a form as browsers send them. @throws PageRefusal where it is another type, or too large */
export async function readForm(request: Request): Promise<URLSearchParams> {
  const type = (request.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/x-www-form-urlencoded') throw new PageRefusal('wrong_type')
  return new URLSearchParams(Buffer.from(await readBytes(request, maxFormBytes)).toString('utf8'))
}

/** The body of a request, as it came. @throws PageRefusal where it is larger than `maxBytes` */
export async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw new PageRefusal('too_large')
  if (request.body === null) return new Uint8Array()
  for await (const chunk of request.body) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new PageRefusal('too_large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
