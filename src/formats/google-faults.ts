import { type Json, type JsonObject, isObject } from '../domain/json.ts'
import type { AttemptOutcome } from '../domain/upstream.ts'
import { isArray } from './fields.ts'

/** The meaning of an error in Google's form. */
export interface GoogleErrorClass {
  readonly outcome: Exclude<AttemptOutcome, 'answered'>
  /** The delay from `RetryInfo`, not yet clamped. */
  readonly retryAfterMs?: number
}

/** The canonical codes of `google.rpc.Status` that are more precise than the HTTP status. */
const outcomes: Readonly<Record<string, GoogleErrorClass['outcome']>> = {
  RESOURCE_EXHAUSTED: 'rate_limited',
  UNAUTHENTICATED: 'rejected_credentials',
  PERMISSION_DENIED: 'rejected_credentials',
  // Billing is disabled, or the region is not served: the caller's content cannot fix it.
  FAILED_PRECONDITION: 'rejected_credentials',
  DEADLINE_EXCEEDED: 'timeout',
  UNAVAILABLE: 'server_error',
  INTERNAL: 'server_error',
  ABORTED: 'server_error',
  UNKNOWN: 'server_error',
}
const keyReasons = /^API_KEY_|^ACCESS_TOKEN_|^CREDENTIALS_|^SERVICE_DISABLED$|^CONSUMER_(?:INVALID|SUSPENDED)$/
/** Google has no code for a rejected signature: only its message says it. */
const badSignature = /thought[ _]?signature/i
/** Longer messages repeat the request. */
const maxMessageChars = 600
const duration = /^(\d{1,40}(?:\.\d{1,9})?)s$/

/**
 * Classifies an error of Google's APIs, `{code, message, status, details}`; undefined for other errors, and if the HTTP
 * status is enough.
 */
export function classifyGoogleError(error: JsonObject): GoogleErrorClass | undefined {
  const { status, message, details } = error
  if (typeof status !== 'string') return undefined
  const entries = isArray(details) ? details.filter(isObject) : []
  // Google reports a wrong API key as an invalid argument.
  if (entries.some(({ reason }) => typeof reason === 'string' && keyReasons.test(reason))) {
    return { outcome: 'rejected_credentials' }
  }
  if (status === 'INVALID_ARGUMENT' && typeof message === 'string') {
    if (badSignature.test(message.slice(0, maxMessageChars))) return { outcome: 'server_error' }
  }
  const outcome = Object.hasOwn(outcomes, status) ? outcomes[status] : undefined
  if (outcome === undefined) return undefined
  const retryAfterMs = entries.map(({ retryDelay }) => readDelay(retryDelay)).find((ms) => ms !== undefined)
  return retryAfterMs === undefined ? { outcome } : { outcome, retryAfterMs }
}

function readDelay(value: Json | undefined): number | undefined {
  const seconds = typeof value === 'string' ? duration.exec(value)?.[1] : undefined
  return seconds === undefined ? undefined : Math.min(Math.ceil(Number(seconds) * 1000), Number.MAX_SAFE_INTEGER)
}
