import type { UpstreamHead } from '../../gateway/ports.ts'

const longestRequestId = 128
const longestContentType = 128
const longestRetryAfter = 64

/** Headers with the provider's own request id, the most specific first. */
const requestIdHeaders = [
  'x-request-id',
  'request-id',
  'apim-request-id',
  'x-generation-id',
  'x-correlation-id',
  'cf-ray',
]

/** The headers that are read, here or to frame the answer; all others are only checked. */
export const knownHeaders: ReadonlyMap<string, string> = new Map(
  [
    ...requestIdHeaders,
    'content-type',
    'retry-after',
    'retry-after-ms',
    'connection',
    'keep-alive',
    'transfer-encoding',
    'content-length',
  ].map((name) => [name, name]),
)

const notPrintable = /[^\x20-\x7e]+/g
const httpDate = /^(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? .{10,40}$/

export type UpstreamHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Extracts the allowed parts of an upstream's status line and headers, each value sanitized (contract 21.12). */
export function readHead(status: number, headers: UpstreamHeaders, nowMs: () => number): UpstreamHead {
  return {
    status,
    contentType: clean(first(headers['content-type']), longestContentType).toLowerCase(),
    retryAfterMs: readRetryAfter(first(headers['retry-after-ms']), first(headers['retry-after']), nowMs),
    requestId: readRequestId(headers),
  }
}

/**
 * The provider's requested delay in milliseconds from now: `retry-after-ms`, or `Retry-After` as seconds or as an HTTP
 * date (0 if it has passed). Undefined for anything else. Not clamped: the gateway does that (contract 8.6).
 */
export function readRetryAfter(
  milliseconds: string | undefined,
  retryAfter: string | undefined,
  nowMs: () => number,
): number | undefined {
  if (milliseconds !== undefined) {
    const ms = readNumber(milliseconds)
    if (ms !== undefined) return ms
  }
  if (retryAfter === undefined || retryAfter.length > longestRetryAfter) return undefined
  const seconds = readNumber(retryAfter)
  if (seconds !== undefined) return Math.min(Math.round(seconds * 1000), Number.MAX_SAFE_INTEGER)
  if (!httpDate.test(retryAfter)) return undefined
  const atMs = Date.parse(retryAfter)
  return Number.isNaN(atMs) ? undefined : Math.max(0, Math.round(atMs - nowMs()))
}

function readNumber(text: string): number | undefined {
  if (text.length > longestRetryAfter || !/^\d+(?:\.\d+)?$/.test(text)) return undefined
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER)
}

function readRequestId(headers: UpstreamHeaders): string | undefined {
  for (const name of requestIdHeaders) {
    const value = headers[name]
    if (value === undefined) continue
    const id = clean(first(value), longestRequestId)
    if (id !== '') return id
  }
  return undefined
}

function clean(value: string | undefined, longest: number): string {
  if (value === undefined) return ''
  const text = value.length > longest * 4 ? value.slice(0, longest * 4) : value
  return text.replace(notPrintable, '').trim().slice(0, longest)
}

function first(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : value?.[0]
}
