import { isMarkedGpt } from '../../formats/openai/cache-marks.ts'
import { hourMs } from '../../runtime/durations.ts'
import type { Backend } from '../ports.ts'

/** Of providers that publish nothing: the shortest that any other one publishes. */
const usualMs = hourMs / 12
/** Where the caller's own marks ask for the longer lifetime: `"ttl": "1h"`. */
const hourMark = Buffer.from('"1h"')
const mark = Buffer.from('"cache_control"')
const dayRetention = Buffer.from('"24h"')

/** Backends with the same cache: the same endpoint, credential, and model, unless the operator says more (contract 45.3). */
export function cacheDomainOf({ cacheDomain, issuer, model }: Backend): string {
  return cacheDomain === undefined ? `${issuer} ${model}` : `= ${cacheDomain} ${model}`
}

/** How long a provider stores a prompt after its last request began, milliseconds (contract 45.2). */
export function cacheLifetimeMs({ cacheMs, dialect, format, model }: Backend, bytes: Uint8Array): number {
  if (cacheMs !== undefined) return cacheMs
  if (format === 'anthropic-messages') return has(bytes, hourMark) ? hourMs : usualMs
  if (dialect.cacheMs !== undefined) return dialect.cacheMs
  if (has(bytes, dayRetention)) return 24 * hourMs
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
  return typeof body === 'string' ? body.includes('"cache_control"') : has(body, mark)
}

function has(bytes: Uint8Array, text: Buffer): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(text)
}
