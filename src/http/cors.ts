import type { IncomingMessage, ServerResponse } from 'node:http'

/** How long a browser may cache a preflight response, seconds (contract 2.37). */
const maxAgeSeconds = 7_200
/** A browser's list of the headers that it wants to send. */
const headerNames = /^[\w-]{1,64}(?:, ?[\w-]{1,64}){0,63}$/
/** Response headers that pages may read in addition to those that browsers always expose. */
const exposed = [
  'X-Request-Id',
  'Request-Id',
  'X-Should-Retry',
  'Retry-After',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-Quota-Limit',
  'X-Quota-Used',
  'X-Quota-Remaining',
  'X-Quota-Period',
  'X-Quota-Reset',
  'RateLimit',
  'RateLimit-Policy',
  'X-Svc-Router-Upstream',
  'X-Svc-Router-Retry-Count',
  'X-Svc-Router-Model',
  'X-Svc-Router-Cost',
  'X-Svc-Router-Max-Output-Tokens',
  'X-Svc-Router-Simulated',
  'X-Svc-Router-Estimated',
  'X-Svc-Router-Backends',
  'Idempotent-Replayed',
  'WWW-Authenticate',
].join(', ')

/** Decides which pages of other origins may call the API from a browser: only those that the operator configures. */
export class Cors {
  readonly #origins: ReadonlySet<string>

  /** `origins` such as `https://app.example.com`, or `*` for all. */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins)
  }

  /** Adds the headers that let the requesting page read a response. Call before the response is written. */
  allow({ headers, method }: IncomingMessage, response: ServerResponse): void {
    const { origin } = headers
    if (this.#origins.size === 0) return
    const isForAll = this.#origins.has('*')
    if (!isForAll) response.setHeader('Vary', 'Origin')
    if (origin === undefined || !(isForAll || this.#origins.has(origin))) return
    response.setHeader('Access-Control-Allow-Origin', isForAll ? '*' : origin)
    response.setHeader('Access-Control-Expose-Headers', exposed)
    const requested = headers['access-control-request-headers']
    if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) return
    response.setHeader('Access-Control-Allow-Methods', 'GET, POST, DELETE')
    if (requested !== undefined && headerNames.test(requested))
      response.setHeader('Access-Control-Allow-Headers', requested)
    response.setHeader('Access-Control-Max-Age', String(maxAgeSeconds))
  }
}
