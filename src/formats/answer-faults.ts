import type { Json, JsonObject } from '../domain/conversation.ts'
import { UpstreamError, type AttemptOutcome, type Refusal } from '../domain/upstream.ts'
import { isObject, parseObject } from '../domain/json.ts'
import { googleFault } from './google-faults.ts'
import { maxAnswerDepth, nestsDeeper } from './json-depth.ts'
import { isLimitName, withCompanions } from './refusals/optional-fields.ts'
import { readError, readRefusal, type RefusalBody } from './refusals/refusal-body.ts'
import {
  brokenRule,
  fieldsDenied,
  needsDenied,
  saysTooLarge,
  saysTooLong,
  saysUnknownModel,
  windowTold,
} from './refusals/refusal-words.ts'

/** What providers call these faults in an error's `code` or `type`. */
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
  // A used-up account of ours at the provider does not come back in seconds: it is as good as a bad credential.
  ['insufficient_quota', 'rejected_credentials'],
  [429, 'rate_limited'],
  ['429', 'rate_limited'],
])

/** The data of one event, or a whole answer. @throws UpstreamError `broken` for what is not a JSON object, and for JSON nested too deep */
export function parseAnswer(text: string): JsonObject {
  const answer = nestsDeeper(text, maxAnswerDepth) ? undefined : parseObject(text)
  if (answer === undefined) throw new UpstreamError('broken')
  return answer
}

/** What a piece of an answer says; empty where it is absent or null. @throws UpstreamError `broken` for what is no text */
export function saidText(text: Json | undefined): string {
  if (typeof text === 'string') return text
  if (text === undefined || text === null) return ''
  throw new UpstreamError('broken')
}

const usedUp = /credit balance is too low/i
/** Longer messages are not looked through. */
const maxWordsChars = 600

/** The fault that only an error's message tells, from its first 600 characters; undefined for all others. */
export function toldByMessage(error: JsonObject): 'context_too_long' | 'rejected_credentials' | undefined {
  const { type, message } = error
  if (type !== 'invalid_request_error' || typeof message !== 'string') return undefined
  const words = message.slice(0, maxWordsChars)
  if (saysTooLong(words.toLowerCase())) return 'context_too_long'
  return usedUp.test(words) ? 'rejected_credentials' : undefined
}

/** The category of an error that came inside an answer; its text is left behind (contract 35.5). */
export function answerFault(error: Json | undefined): UpstreamError {
  const google = isObject(error) ? googleFault(error) : undefined
  if (google !== undefined) return new UpstreamError(google.outcome, { retryAfterMs: google.retryAfterMs })
  const read = readError(error)
  if (read === undefined) return new UpstreamError('server_error')
  const refused = requestFault(read, undefined)
  if (refused !== undefined) return refused
  return new UpstreamError(outcomes.get(read.code) ?? outcomes.get(read.type) ?? 'server_error')
}

/** Statuses with which a provider says that the content is at fault: passed on, no failover (contract 7.13). */
const contentStatuses = new Set([400, 413, 422])
/** Statuses of servers that do not tell the caller's mistakes from their own. */
const serverStatuses = new Set([500, 501])
const credentialStatuses = new Set([401, 402, 403])
/** Names of request fields only: `messages[0].content`, `temperature`. */
const paramShape = /^[A-Za-z_][\w.[\]-]{0,63}$/

/** Status and, where the provider said one, `Retry-After` in milliseconds, not yet clamped. */
interface RefusalHead {
  readonly status: number
  readonly retryAfterMs?: number | undefined
}

/**
 * What a provider's refusal means, from its status and its body. The body is read for its codes and for sentences that
 * servers are known to use; it is never passed on.
 */
export function refusalFault({ status, retryAfterMs }: RefusalHead, body: string): UpstreamError {
  const read = readRefusal(body)
  const google = read === undefined ? undefined : googleFault(read.error)
  if (google !== undefined) {
    return new UpstreamError(google.outcome, { status, retryAfterMs: retryAfterMs ?? google.retryAfterMs })
  }
  const told = read === undefined ? undefined : (outcomes.get(read.code) ?? outcomes.get(read.type))
  if (status === 429) return rateFault(told, read, retryAfterMs)
  if (read !== undefined && toldByMessage(read.error) === 'rejected_credentials')
    return new UpstreamError('rejected_credentials', { status })
  // A request that is larger than all that a minute allows will never be let in there.
  if (status === 413 && told === 'rate_limited') return new UpstreamError('context_too_long', { status })
  const refused = read === undefined ? undefined : requestFault(read, status)
  if (refused !== undefined) return refused
  if (contentStatuses.has(status)) return new UpstreamError('rejected_content', { status, param: paramOf(read) })
  if (credentialStatuses.has(status)) return new UpstreamError('rejected_credentials', { status })
  if (status === 404 || status === 405) return new UpstreamError('not_found', { status })
  if (status === 408 || status === 504) return new UpstreamError('timeout', { status, retryAfterMs })
  return new UpstreamError('server_error', { status, retryAfterMs })
}

/** What a 429 means: also that nothing is left to pay with, or that this request alone is more than a minute allows. */
function rateFault(
  told: UpstreamError['outcome'] | undefined,
  read: RefusalBody | undefined,
  retryAfterMs: number | undefined,
): UpstreamError {
  if (told === 'rejected_credentials') return new UpstreamError(told, { status: 429 })
  if (read !== undefined && saysTooLarge(read.message)) return new UpstreamError('context_too_long', { status: 429 })
  return new UpstreamError('rate_limited', { status: 429, retryAfterMs })
}

/** The request's or the configuration's fault that a refusal tells; undefined where it tells none. */
function requestFault(read: RefusalBody, status: number | undefined): UpstreamError | undefined {
  const { code, type, message } = read
  const told = outcomes.get(code) ?? outcomes.get(type)
  if (told === 'not_found') return new UpstreamError('not_found', { status })
  if (told === 'context_too_long') return windowFault(read, status)
  const isRefused = status === undefined || contentStatuses.has(status) || status === 404
  if (!isRefused && !serverStatuses.has(status)) return undefined
  if (saysTooLong(message)) return windowFault(read, status)
  const lacks = needsDenied(message)
  if (lacks.length > 0) return new UpstreamError('not_capable', { status, refusal: { lacks } })
  if (isRefused && saysUnknownModel(message)) return new UpstreamError('not_found', { status })
  const refusal = describeRefusal(read)
  // Above 499 a server blames itself: only what it says in known words is the request's fault.
  if (refusal.rule === undefined && refusal.fields === undefined) return undefined
  if (status !== undefined && !contentStatuses.has(status) && refusal.rule === undefined) return undefined
  return new UpstreamError('rejected_content', { status, param: paramOf(read), refusal })
}

function windowFault({ windowTokens, message }: RefusalBody, status: number | undefined): UpstreamError {
  const told = windowTokens ?? windowTold(message)
  return new UpstreamError('context_too_long', {
    status,
    ...(told !== undefined && { refusal: { windowTokens: told } }),
  })
}

/** Codes with which OpenAI, and those that speak as it does, refuse a field; whether for every value. */
const fieldCodes = new Map<Json | undefined, boolean>([
  ['unsupported_parameter', true],
  ['unknown_parameter', true],
  ['extra_forbidden', true],
  ['unsupported_value', false],
])

function describeRefusal(read: RefusalBody): Refusal {
  const { code, message, unknownFields } = read
  const param = paramOf(read)
  const isGeneral = fieldCodes.get(code)
  const field = param?.split(/[.[]/)[0]
  const named = isGeneral !== undefined && field !== undefined ? [field] : fieldsDenied(message)
  // A refused value of the length limit says nothing against its name.
  const fields = withCompanions([...unknownFields, ...named]).filter((one) => isGeneral !== false || !isLimitName(one))
  const rule = brokenRule(message) ?? fieldRule(isGeneral, unknownFields)
  return {
    ...(fields.length > 0 && { fields, isGeneral: isGeneral ?? true }),
    ...(rule !== undefined && { rule }),
  }
}

function fieldRule(isGeneral: boolean | undefined, unknownFields: readonly string[]): Refusal['rule'] {
  if (isGeneral === false) return 'unsupported_value'
  return isGeneral === true || unknownFields.length > 0 ? 'unknown_field' : undefined
}

function paramOf(read: RefusalBody | undefined): string | undefined {
  const param = read?.param ?? read?.unknownFields[0]
  return typeof param === 'string' && paramShape.test(param) ? param : undefined
}
