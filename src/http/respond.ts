import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { ServiceError } from '../domain/errors.ts'
import { namesEtag } from '../runtime/etag.ts'

/** Writes a JSON body with the headers of every response (contract 2.36, 2.38). */
export function sendJson(
  response: ServerResponse,
  requestId: string,
  status: number,
  body: unknown,
  headers: readonly string[] = ['Cache-Control', 'no-store'],
): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, [
    'Content-Type',
    'application/json; charset=utf-8',
    'Content-Length',
    String(bytes.length),
    'X-Request-Id',
    requestId,
    'X-Content-Type-Options',
    'nosniff',
    ...headers,
  ])
  response.end(response.req.method === 'HEAD' ? undefined : bytes)
}

/** Writes public metadata (contract 2.38): the same for everyone, cacheable for five minutes. */
export function sendPublic(response: ServerResponse, requestId: string, body: unknown): void {
  const etag = `"${createHash('sha256').update(JSON.stringify(body)).digest('base64url').slice(0, 22)}"`
  const headers = ['Cache-Control', 'public, max-age=300', 'ETag', etag]
  if (namesEtag(response.req.headers['if-none-match'], etag)) {
    response.writeHead(304, ['X-Request-Id', requestId, ...headers])
    response.end()
    return
  }
  sendJson(response, requestId, 200, body, headers)
}

/** Answers OPTIONS with the methods of the path. */
export function sendAllowed(response: ServerResponse, requestId: string, methods: string): void {
  response.writeHead(204, ['Allow', allowOf(methods), 'X-Request-Id', requestId, 'Cache-Control', 'no-store'])
  response.end()
}

/** Writes an empty response. */
export function sendEmpty(response: ServerResponse, requestId: string): void {
  response.writeHead(200, ['Content-Length', '0', 'X-Request-Id', requestId, 'Cache-Control', 'no-store'])
  response.end()
}

/** The methods of a path as `Allow` lists them (contract 2.21); `methods` are those of its routes: `GET, DELETE`. */
function allowOf(methods: string): string {
  const served = methods === '' ? [] : methods.split(', ')
  return [...served, ...(served.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ')
}

/** The error for a method that a path does not serve. Its message names only `methods`, which callers look for. */
export function notAllowed(method = '', methods: string): ServiceError {
  const shown = /^[A-Z]{1,10}$/.test(method) ? method : 'This method'
  const allow = allowOf(methods)
  return new ServiceError('method_not_allowed', { words: { method: shown, allowed: methods || allow, allow } })
}
