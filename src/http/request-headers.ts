import type { IncomingMessage } from 'node:http'
import { invalidRequest, ServiceError } from '../domain/errors.ts'
import { idempotencyKeyHeader } from '../domain/idempotency.ts'
import { attachedToolsHeader, fusionDepthHeader } from '../domain/profiles.ts'
import { traceHeader } from '../domain/trace-header.ts'
import { statedSession } from '../gateway/cache/session-identity.ts'
import type { ModelRequest } from '../gateway/ports.ts'

/** More headers than any client sends. */
const maxHeaders = 200
/** Headers that must not be repeated, because two values would be ambiguous (contract 2.27). */
const once = [
  'host',
  'content-type',
  'authorization',
  'x-api-key',
  'content-length',
  idempotencyKeyHeader,
  attachedToolsHeader,
]
/** Their indexes by the length of their names, which are all different. */
const indexByLength = new Map(once.map((name, index) => [name.length, index]))

/**
 * Rejects headers that two parsers could interpret differently (contract 2.27, 2.28).
 * @throws ServiceError `duplicate_header`, `headers_too_large`, `invalid_request`
 */
export function checkRequestHeaders({ rawHeaders, headers, httpVersion }: IncomingMessage): void {
  if (rawHeaders.length > maxHeaders * 2) throw new ServiceError('headers_too_large')
  if (headers.host === undefined && httpVersion !== '1.0') {
    throw invalidRequest('host', 'The host header is missing. Send it once.')
  }
  let seen = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const bit = bitOf(rawHeaders[index]!)
    if (bit !== 0 && (seen & bit) !== 0) {
      const header = once[Math.log2(bit)]!
      throw new ServiceError('duplicate_header', { param: header, words: { header } })
    }
    seen |= bit
  }
  // Node removes the last coding and would ignore those below it.
  const coding = headers['transfer-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    throw invalidRequest(
      'transfer-encoding',
      'The transfer-encoding header must be chunked or absent. Send the body without any other encoding.',
    )
  }
}

/** The bit of a name in `once`, 0 for every other name. Compares lengths first, because it runs for every header. */
function bitOf(name: string): number {
  const index = indexByLength.get(name.length)
  if (index === undefined || (name.charCodeAt(0) | 0x20) !== once[index]!.charCodeAt(0)) return 0
  return name.toLowerCase() === once[index] ? 1 << index : 0
}

/** Parses the headers of a model request; the headers in `names` are forwarded to backends of the same format. */
export function parseRequestHeaders(
  request: IncomingMessage,
  names?: readonly string[],
): Pick<
  ModelRequest,
  'timeoutMs' | 'isRetry' | 'passedHeaders' | 'fusionDepth' | 'traceparent' | 'statedSession' | 'userAgent'
> {
  return {
    timeoutMs: statedTimeoutMs(request),
    isRetry: statesRetry(request),
    passedHeaders: passedHeaders(request, names),
    fusionDepth: statedFusionDepth(request),
    traceparent: statedTrace(request),
    statedSession: statedSession(request.headers),
    userAgent: request.headers['user-agent'],
  }
}

/**
 * The client's own limit on the whole request, milliseconds: seconds in `X-Stainless-Timeout` (contract 6.19), which
 * Anthropic's SDK for Python writes as `900.0`.
 */
function statedTimeoutMs({ headers }: IncomingMessage): number | undefined {
  const value = headers['x-stainless-timeout']
  if (typeof value !== 'string' || !/^\d{1,7}(?:\.\d{1,9})?$/.test(value)) return undefined
  const milliseconds = Math.floor(Number(value) * 1000)
  return milliseconds > 0 ? milliseconds : undefined
}

/** Whether an SDK says that it has sent the request before: `X-Stainless-Retry-Count` from 1 to 99 (contract 7.32). */
function statesRetry({ headers }: IncomingMessage): boolean {
  const value = headers['x-stainless-retry-count']
  return typeof value === 'string' && /^[1-9]\d?$/.test(value)
}

/** The trace that the client wants to continue, unchecked. */
function statedTrace({ headers }: IncomingMessage): string | undefined {
  const value = headers[traceHeader]
  return typeof value === 'string' ? value : undefined
}

/** How many fusions of other svc-routers the request is nested in; undefined if none. */
function statedFusionDepth({ headers }: IncomingMessage): number | undefined {
  return headers[fusionDepthHeader] === undefined ? undefined : 1
}

/** Values that may be forwarded to a provider: names and dates in a list, no more. */
const passable = /^[\w.,: -]{1,2048}$/

/**
 * These headers in the form in which they may be forwarded, alternating name and value; undefined if there are none
 * (contract 11.11).
 */
function passedHeaders(
  { headers }: IncomingMessage,
  names: readonly string[] | undefined,
): readonly string[] | undefined {
  if (names === undefined) return undefined
  const passed = names.flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' && passable.test(value) ? [name, value] : []
  })
  return passed.length === 0 ? undefined : passed
}
