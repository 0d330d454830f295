import { type Json, type JsonObject, isObject, objectOf, parseObject } from '../domain/json.ts'
import { UpstreamError, type AttemptOutcome, type ProviderRejection } from '../domain/upstream.ts'
import { classifyGoogleError } from './google-faults.ts'
import { isTooComplex } from './json-limits.ts'
import { fieldOfPath, isLimitName, markFields, withCompanions } from './rejections/optional-fields.ts'
import { readError, readRejection, type RejectionBody } from './rejections/rejection-body.ts'
import {
  isRefusalCode,
  saysRefused,
  violatedRule,
  unsupportedFields,
  unsupportedNeeds,
  saysTooLarge,
  saysTooLong,
  saysUnknownModel,
  statedWindow,
} from './rejections/rejection-text.ts'

/** The outcome for each error `code` or `type` that providers use. */
const outcomes = new Map<Json | undefined, Exclude<AttemptOutcome, 'answered'>>([
  ['context_length_exceeded', 'context_too_long'],
  ['context_window_exceeded', 'context_too_long'],
  // llama-server.
  ['exceed_context_size_error', 'context_too_long'],
  ['model_not_found', 'not_found'],
  ['model_decommissioned', 'not_found'],
  ['invalid_model', 'not_found'],
  ['DeploymentNotFound', 'not_found'],
  ['rate_limit_exceeded', 'rate_limited'],
  ['rate_limit_error', 'rate_limited'],
  ['rate_limited', 'rate_limited'],
  ['too_many_requests', 'rate_limited'],
  // An exhausted balance at the provider does not recover in seconds: treat it like a bad credential.
  ['insufficient_quota', 'rejected_credentials'],
  [429, 'rate_limited'],
  ['429', 'rate_limited'],
])

/**
 * Parses the data of one event, or a whole answer. @throws UpstreamError `broken` if it is not a JSON object, or is
 * too complex
 */
export function parseAnswer(text: string): JsonObject {
  if (isTooComplex(text)) throw new UpstreamError('broken')
  return parseSimple(text)
}

/** As `parseAnswer`, for text that is known not to be too complex. @throws UpstreamError `broken` */
export function parseSimple(text: string): JsonObject {
  const answer = parseObject(text)
  if (answer === undefined) throw new UpstreamError('broken')
  return answer
}

/** The text of a field; empty if absent or null. @throws UpstreamError `broken` if it is not a string */
export function errorText(text: Json | undefined): string {
  if (typeof text === 'string') return text
  if (text === undefined || text === null) return ''
  throw new UpstreamError('broken')
}

/** The elements of a list; none if absent or null. @throws UpstreamError `broken` if it is not a list of objects */
export function errorObjects(list: Json | undefined): readonly JsonObject[] {
  if (list === undefined || list === null) return []
  if (!Array.isArray(list) || !list.every(isObject)) throw new UpstreamError('broken')
  return list
}

const usedUp = /credit balance is too low/i
/** Longer messages are not searched. */
const maxSearchedChars = 600

/** The error class that only the message reveals, from its first 600 characters; undefined for all others. */
export function classifyByMessage(error: JsonObject): 'context_too_long' | 'rejected_credentials' | undefined {
  const { type, message } = error
  if (type !== 'invalid_request_error' || typeof message !== 'string') return undefined
  const words = message.slice(0, maxSearchedChars)
  if (saysTooLong(words.toLowerCase())) return 'context_too_long'
  return usedUp.test(words) ? 'rejected_credentials' : undefined
}

/** Classifies an error inside an answer; its message is dropped (contract 35.5). */
export function classifyAnswerError(error: Json | undefined): UpstreamError {
  const read = readError(error)
  const refusal = refusalIn(read)
  if (refusal !== undefined) return refusal
  const google = isObject(error) ? classifyGoogleError(error) : undefined
  if (google !== undefined) return new UpstreamError(google.outcome, { retryAfterMs: google.retryAfterMs })
  if (read === undefined) return new UpstreamError('server_error')
  const refused = requestFault(read, undefined)
  if (refused !== undefined) return refused
  return new UpstreamError(outcomes.get(read.code) ?? outcomes.get(read.type) ?? 'server_error')
}

/** Statuses with which content filters refuse. Others, such as 429 and 503, say that the filter is not available. */
const refusalStatuses = new Set<number | undefined>([undefined, 400, 403, 413, 422, 451])

/**
 * The refusal of a content filter; undefined for every other error. It names no field, so that the request is not sent
 * again without one.
 */
export function refusalIn(read: RejectionBody | undefined, status?: number): UpstreamError | undefined {
  if (read === undefined) return undefined
  const { code, type, message, error } = read
  const codes = [code, type, objectOf(error['innererror'])['code']]
  const isRefusal = codes.some(isRefusalCode) || (refusalStatuses.has(status) && saysRefused(message, status))
  return isRefusal
    ? new UpstreamError('rejected_content', { status, rejection: { rule: 'content_filter' } })
    : undefined
}

/** Statuses that blame the request's content: returned to the client, no failover (contract 7.13). */
const contentStatuses = new Set([400, 413, 422])
/** Statuses that some servers also use for the caller's mistakes. */
const serverStatuses = new Set([500, 501])
const credentialStatuses = new Set([401, 402, 403])
/** Matches names of request fields only: `messages[0].content`, `temperature`. */
const paramShape = /^[A-Za-z_][\w.[\]-]{0,63}$/

/** The status and, if the provider sent one, `Retry-After` in milliseconds, not yet clamped. */
interface RejectionHead {
  readonly status: number
  readonly retryAfterMs?: number | undefined
}

/**
 * Classifies a provider's rejection by its status and body. The body is searched for error codes and for known
 * sentences; it is never passed on.
 */
export function classifyRejection({ status, retryAfterMs }: RejectionHead, body: string): UpstreamError {
  const read = readRejection(body)
  const refusal = refusalIn(read, status)
  if (refusal !== undefined) return refusal
  const google = read === undefined ? undefined : classifyGoogleError(read.error)
  if (google !== undefined) {
    return new UpstreamError(google.outcome, { status, retryAfterMs: retryAfterMs ?? google.retryAfterMs })
  }
  const reported = read === undefined ? undefined : (outcomes.get(read.code) ?? outcomes.get(read.type))
  if (status === 429) return rateFault(reported, read, retryAfterMs)
  if (read !== undefined && classifyByMessage(read.error) === 'rejected_credentials')
    return new UpstreamError('rejected_credentials', { status })
  // A request larger than the whole per-minute limit can never succeed there.
  if (status === 413 && reported === 'rate_limited') return new UpstreamError('context_too_long', { status })
  const refused = read === undefined ? undefined : requestFault(read, status)
  if (refused !== undefined) return refused
  if (contentStatuses.has(status)) return new UpstreamError('rejected_content', { status, param: paramOf(read) })
  if (credentialStatuses.has(status)) return new UpstreamError('rejected_credentials', { status })
  if (status === 404 || status === 405) return new UpstreamError('not_found', { status })
  if (status === 408 || status === 504) return new UpstreamError('timeout', { status, retryAfterMs })
  return new UpstreamError('server_error', { status, retryAfterMs })
}

/** Classifies a 429, which can also mean an exhausted balance, or a single request larger than the per-minute limit. */
function rateFault(
  reported: UpstreamError['outcome'] | undefined,
  read: RejectionBody | undefined,
  retryAfterMs: number | undefined,
): UpstreamError {
  if (reported === 'rejected_credentials') return new UpstreamError(reported, { status: 429 })
  if (read !== undefined && saysTooLarge(read.message)) return new UpstreamError('context_too_long', { status: 429 })
  return new UpstreamError('rate_limited', { status: 429, retryAfterMs })
}

/** The error of the request or the configuration that a rejection reports; undefined if it reports none. */
function requestFault(read: RejectionBody, status: number | undefined): UpstreamError | undefined {
  const { code, type, message } = read
  const reported = outcomes.get(code) ?? outcomes.get(type)
  if (reported === 'not_found') return new UpstreamError('not_found', { status })
  if (reported === 'context_too_long') return windowFault(read, status)
  const isRefused = status === undefined || contentStatuses.has(status) || status === 404
  if (!isRefused && !serverStatuses.has(status)) return undefined
  if (saysTooLong(message)) return windowFault(read, status)
  const lacks = unsupportedNeeds(message)
  if (lacks.length > 0) return new UpstreamError('not_capable', { status, rejection: { lacks } })
  if (isRefused && saysUnknownModel(message)) return new UpstreamError('not_found', { status })
  const rejection = describeRejection(read)
  // A 5xx blames the server: only a known sentence makes it the request's error.
  if (rejection.rule === undefined && rejection.fields === undefined) return undefined
  if (status !== undefined && !contentStatuses.has(status) && rejection.rule === undefined) return undefined
  return new UpstreamError('rejected_content', { status, param: paramOf(read), rejection })
}

function windowFault({ windowTokens, message }: RejectionBody, status: number | undefined): UpstreamError {
  const reported = windowTokens ?? statedWindow(message)
  return new UpstreamError('context_too_long', {
    status,
    ...(reported !== undefined && { rejection: { windowTokens: reported } }),
  })
}

/**
 * Error codes with which OpenAI and compatible servers reject a field; the value says whether they reject it for every
 * value.
 */
const fieldCodes = new Map<Json | undefined, boolean>([
  ['unsupported_parameter', true],
  ['unknown_parameter', true],
  ['extra_forbidden', true],
  ['unsupported_value', false],
])

function describeRejection(read: RejectionBody): ProviderRejection {
  const { code, message, unknownFields } = read
  const param = paramOf(read)
  const isGeneral = fieldCodes.get(code)
  const field = param === undefined ? undefined : fieldOfPath(param.split(/[.[\]]+/))
  const named = isGeneral !== undefined && field !== undefined ? [field] : unsupportedFields(message)
  // A rejected value of the length limit says nothing about the field's name.
  const fields = withCompanions([...unknownFields, ...named]).filter((one) => isGeneral !== false || !isLimitName(one))
  const rule = violatedRule(message) ?? fieldRule(isGeneral, unknownFields)
  if (fields.length === 0) {
    // A mark in the wrong place says nothing about marks in general.
    const marks = markFields.filter((name) => message.includes(name))
    return { ...(marks.length > 0 && { fields: marks, isGeneral: false }), ...(rule !== undefined && { rule }) }
  }
  return { fields, isGeneral: isGeneral ?? true, ...(rule !== undefined && { rule }) }
}

function fieldRule(isGeneral: boolean | undefined, unknownFields: readonly string[]): ProviderRejection['rule'] {
  if (isGeneral === false) return 'unsupported_value'
  return isGeneral === true || unknownFields.length > 0 ? 'unknown_field' : undefined
}

function paramOf(read: RejectionBody | undefined): string | undefined {
  const param = read?.param ?? read?.unknownFields[0]
  return typeof param === 'string' && paramShape.test(param) ? param : undefined
}
