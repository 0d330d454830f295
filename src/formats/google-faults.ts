import type { Json, JsonObject } from '../domain/conversation.ts'
import type { AttemptOutcome } from '../domain/upstream.ts'
import { isObject } from '../domain/json.ts'
import { isArray } from './fields.ts'

/** What an error in Google's form means. */
export interface GoogleFault {
  readonly outcome: Exclude<AttemptOutcome, 'answered'>
  /** What `RetryInfo` asks for, not yet clamped. */
  readonly retryAfterMs?: number
}

/** The canonical codes of `google.rpc.Status` that say more than the HTTP status does. */
const outcomes: Readonly<Record<string, GoogleFault['outcome']>> = {
  RESOURCE_EXHAUSTED: 'rate_limited',
  UNAUTHENTICATED: 'rejected_credentials',
  PERMISSION_DENIED: 'rejected_credentials',
  // Billing is off, or the region is not served: nothing that the caller's content could mend.
  FAILED_PRECONDITION: 'rejected_credentials',
  DEADLINE_EXCEEDED: 'timeout',
  UNAVAILABLE: 'server_error',
  INTERNAL: 'server_error',
  ABORTED: 'server_error',
  UNKNOWN: 'server_error',
}
const keyReasons = /^API_KEY_|^ACCESS_TOKEN_|^CREDENTIALS_|^SERVICE_DISABLED$|^CONSUMER_(?:INVALID|SUSPENDED)$/
/** Google has no code for a signature that it does not take: only its sentence says it. */
const badSignature = /thought[ _]?signature/i
/** Longer messages repeat the request. */
const maxMessageChars = 600
const duration = /^(\d{1,40}(?:\.\d{1,9})?)s$/

/** Reads an error of Google's APIs, `{code, message, status, details}`; undefined where it is none or its HTTP status says it all. */
export function googleFault(error: JsonObject): GoogleFault | undefined {
  const { status, message, details } = error
  if (typeof status !== 'string') return undefined
  const entries = isArray(details) ? details.filter(isObject) : []
  // A wrong API key is told as an invalid argument.
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
