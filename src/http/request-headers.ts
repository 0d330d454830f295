import type { IncomingMessage } from 'node:http'
import { invalidRequest, ServiceError } from '../domain/errors.ts'

/** More headers than any client sends. */
const maxHeaders = 200
/** Headers of which a second one could mean something else than the first: Node keeps only one of them. */
const once = new Set(['authorization', 'content-type', 'content-length', 'host', 'user-agent'])

/** Refuses headers that two readers could understand differently. @throws ServiceError `duplicate_header`, `headers_too_large`, `invalid_request` */
export function checkHeaders({ rawHeaders, headers, httpVersion }: IncomingMessage): void {
  if (rawHeaders.length > maxHeaders * 2) throw new ServiceError('headers_too_large')
  if (headers.host === undefined && httpVersion !== '1.0') {
    throw invalidRequest('host', 'The header host is missing. Send it once.')
  }
  let seen = ''
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index]!
    // The shortest and the longest of the names above: most headers are passed by without a copy.
    if (raw.length < 4 || raw.length > 14) continue
    const name = raw.toLowerCase()
    if (!once.has(name)) continue
    if (seen.includes(`${name};`)) throw new ServiceError('duplicate_header', { param: name, words: { header: name } })
    seen += `${name};`
  }
  // Node takes off the last coding and would pass over those below it.
  const coding = headers['transfer-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    throw invalidRequest('transfer-encoding', 'The header transfer-encoding may only be chunked. Send the body as it is.')
  }
}

/** The client's own limit on the whole request, milliseconds: whole seconds in `X-Stainless-Timeout` (contract 5.5). */
export function statedTimeoutMs({ headers }: IncomingMessage): number | undefined {
  const value = headers['x-stainless-timeout']
  if (typeof value !== 'string' || !/^\d{1,7}$/.test(value)) return undefined
  const seconds = Number(value)
  return seconds > 0 ? seconds * 1000 : undefined
}
