import { createHash, createHmac } from 'node:crypto'

/** A request as a server receives it. */
export interface SeenRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

/**
 * The value that `Authorization` must have for this request, computed from AWS's description of Signature Version 4
 * without our code: canonical request, string to sign, derived key.
 */
export function expectedAuthorization(request: SeenRequest, secretAccessKey: string): string {
  const { authorization = '' } = request.headers
  const [, id, day, region, service] =
    /Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request/.exec(authorization) ?? []
  const signedHeaders = /SignedHeaders=([^,]+)/.exec(authorization)?.[1] ?? ''
  const [pathname = '', query = ''] = request.path.split('?')
  const canonical = [
    request.method,
    pathname.split('/').map(encode).join('/'),
    [...new URLSearchParams(query)]
      .map((pair) => pair.map(encode).join('='))
      .sort()
      .join('&'),
    ...signedHeaders.split(';').map((name) => `${name}:${(request.headers[name] ?? '').trim().replace(/ +/g, ' ')}`),
    '',
    signedHeaders,
    sha256(request.body),
  ].join('\n')
  const scope = `${day}/${region}/${service}/aws4_request`
  const text = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], scope, sha256(canonical)].join('\n')
  const key = ['aws4_request', service!, region!, day!].reduceRight<Buffer | string>(hmac, `AWS4${secretAccessKey}`)
  const signature = hmac(key, text).toString('hex')
  return `AWS4-HMAC-SHA256 Credential=${id}/${scope}, SignedHeaders=${signedHeaders}, Signature=${signature}`
}
