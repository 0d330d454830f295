import { isMarkedGpt } from '../../formats/openai/cache-marks.ts'
import { hourMs } from '../../runtime/durations.ts'
import type { Backend } from '../ports.ts'

/** Of providers that publish nothing: the shortest that any other one publishes. */
const usualMs = hourMs / 12
const quote = 0x22
const colon = 0x3a
const space = 0x20
/** A member with a text as its value. */
interface Setting {
  /** With its quotes. */
  readonly name: Buffer
  /** Without its first quote, which is so frequent in JSON that a search for it takes ten times as long. */
  readonly value: Buffer
}

/** Where the caller's own marks ask for the longer lifetime. */
const hourMark: Setting = { name: Buffer.from('"ttl"'), value: Buffer.from('1h"') }
const dayRetention: Setting = { name: Buffer.from('"prompt_cache_retention"'), value: Buffer.from('24h"') }
const mark = Buffer.from('"cache_control"')

/** Remembered for each backend: the engine copies a joined text when it is first compared. */
const domains = new WeakMap<Backend, string>()

/** Backends with the same cache: the same endpoint, credential, and model, unless the operator says more (contract 45.3). */
export function cacheDomainOf(backend: Backend): string {
  let domain = domains.get(backend)
  if (domain === undefined) {
    const { cacheDomain, issuer, model } = backend
    domain = cacheDomain === undefined ? `${issuer} ${model}` : `= ${cacheDomain} ${model}`
    domains.set(backend, domain)
  }
  return domain
}

/**
 * How long a provider stores a prompt after its last request began, milliseconds (contract 45.2). Only the bytes after
 * `from` are searched for what the caller asks for.
 */
export function cacheLifetimeMs({ cacheMs, dialect, format, model }: Backend, bytes: Uint8Array, from = 0): number {
  if (cacheMs !== undefined) return cacheMs
  if (format === 'anthropic-messages') return hasSetting(bytes, hourMark, from) ? hourMs : usualMs
  if (dialect.cacheMs !== undefined) return dialect.cacheMs
  if (hasSetting(bytes, dayRetention, from)) return 24 * hourMs
  // Models that take marks store a prompt for at least half an hour.
  return isMarkedGpt(model) ? hourMs / 2 : usualMs
}

/** Whether a provider caches only what is marked. */
export function needsMarks({ format }: Pick<Backend, 'format'>): boolean {
  return format === 'anthropic-messages'
}

/** Whether a body that is sent to an endpoint can be cached there. Inside of a JSON text, the quotes would be escaped. */
export function isCacheable(endpoint: Pick<Backend, 'format'>, body: Uint8Array | string): boolean {
  if (!needsMarks(endpoint)) return true
  // The last mark is nearly always at the end.
  return typeof body === 'string' ? body.lastIndexOf('"cache_control"') >= 0 : bufferOf(body).lastIndexOf(mark) >= 0
}

/** Whether a JSON text has such a member after an offset, with any spaces around its colon. */
function hasSetting(bytes: Uint8Array, { name, value }: Setting, from: number): boolean {
  if (bytes.length - from <= value.length) return false
  const body = bufferOf(bytes)
  for (let at = body.indexOf(value, from); at >= 0; at = body.indexOf(value, at + 1)) {
    if (body[at - 1] !== quote) continue
    const before = skipSpaces(body, at - 2)
    if (body[before] !== colon) continue
    const end = skipSpaces(body, before - 1) + 1
    if (end >= name.length && body.compare(name, 0, name.length, end - name.length, end) === 0) return true
  }
  return false
}

/** The last position, at or before `at`, that is not a space or a line break. */
function skipSpaces(body: Buffer, at: number): number {
  let last = at
  while (last >= 0 && body[last]! <= space) last -= 1
  return last
}

/** The same bytes as a buffer. Nearly all are one: another view of them would take longer than a short search. */
function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
