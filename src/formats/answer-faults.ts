import type { Json, JsonObject } from '../domain/conversation.ts'
import { UpstreamError, type AttemptOutcome } from '../domain/upstream.ts'
import { isObject, parseObject } from '../domain/json.ts'
import { isArray } from './fields.ts'
import { googleFault } from './google-faults.ts'

/** What providers call these faults in an error's `code` or `type`. */
const outcomes = new Map<Json | undefined, Exclude<AttemptOutcome, 'answered'>>([
  ['context_length_exceeded', 'context_too_long'],
  ['context_window_exceeded', 'context_too_long'],
  ['rate_limit_exceeded', 'rate_limited'],
  ['rate_limit_error', 'rate_limited'],
  ['rate_limited', 'rate_limited'],
  ['too_many_requests', 'rate_limited'],
  // A used-up account of ours at the provider does not come back in seconds: it is as good as a bad credential.
  ['insufficient_quota', 'rejected_credentials'],
  [429, 'rate_limited'],
  ['429', 'rate_limited'],
])

/** The data of one event, or a whole answer. @throws UpstreamError `broken` for what is not a JSON object */
export function parseAnswer(text: string): JsonObject {
  const answer = parseObject(text)
  if (answer === undefined) throw new UpstreamError('broken')
  return answer
}

/** Some providers say these only in words: Anthropic calls both of them an invalid request. */
const tooLong = /prompt is too long|exceeds? (?:the )?context (?:limit|window)|input is too long/i
const usedUp = /credit balance is too low/i

/** The fault that only an error's message tells, from its first 500 characters; undefined for all others. */
export function toldByMessage(error: JsonObject): 'context_too_long' | 'rejected_credentials' | undefined {
  const { type, message } = error
  if (type !== 'invalid_request_error' || typeof message !== 'string') return undefined
  const words = message.slice(0, 500)
  if (tooLong.test(words)) return 'context_too_long'
  return usedUp.test(words) ? 'rejected_credentials' : undefined
}

/** The category of an error that came inside an answer; its text is left behind (architecture 8). */
export function answerFault(error: Json | undefined): UpstreamError {
  if (!isObject(error)) return new UpstreamError('server_error')
  const google = googleFault(error)
  if (google !== undefined) return new UpstreamError(google.outcome, { retryAfterMs: google.retryAfterMs })
  return new UpstreamError(outcomes.get(error['code']) ?? outcomes.get(error['type']) ?? 'server_error')
}

/** Statuses with which a provider says that the content is at fault: passed on, no failover (contract 3.3, 5.1). */
const contentStatuses = new Set([400, 413, 422])
/** Names of request fields only: `messages[0].content`, `temperature`. */
const paramShape = /^[A-Za-z_][\w.[\]-]{0,63}$/

/** Status and, where the provider said one, `Retry-After` in milliseconds, not yet clamped. */
interface RefusalHead {
  readonly status: number
  readonly retryAfterMs?: number | undefined
}

/** What a provider's refusal means, from its status and its body. The body is read for its codes and never passed on. */
export function refusalFault({ status, retryAfterMs }: RefusalHead, body: string): UpstreamError {
  const error = errorOf(body)
  const google = error === undefined ? undefined : googleFault(error)
  if (google !== undefined) {
    return new UpstreamError(google.outcome, { status, retryAfterMs: retryAfterMs ?? google.retryAfterMs })
  }
  const code = error?.['code'] ?? error?.['type']
  const told = outcomes.get(code)
  const inWords = error === undefined ? undefined : toldByMessage(error)
  if (inWords !== undefined) return new UpstreamError(inWords, { status })
  if (told === 'context_too_long') return new UpstreamError(told, { status })
  if (contentStatuses.has(status)) return new UpstreamError('rejected_content', { status, param: paramOf(error) })
  if (status === 401 || status === 402 || status === 403) return new UpstreamError('rejected_credentials', { status })
  if (status === 429 && told === 'rejected_credentials') return new UpstreamError(told, { status })
  if (status === 429) return new UpstreamError('rate_limited', { status, retryAfterMs })
  if (status === 408 || status === 504) return new UpstreamError('timeout', { status, retryAfterMs })
  return new UpstreamError('server_error', { status, retryAfterMs })
}

function errorOf(body: string): JsonObject | undefined {
  try {
    const parsed = JSON.parse(body) as Json
    // Google puts the errors of some streams into a list of one.
    const told = isArray(parsed) ? parsed[0] : parsed
    const error = isObject(told) ? told['error'] : undefined
    return isObject(error) ? error : undefined
  } catch {
    // Not JSON: a proxy's page. Its status says enough.
    return undefined
  }
}

function paramOf(error: JsonObject | undefined): string | undefined {
  const param = error?.['param']
  return typeof param === 'string' && paramShape.test(param) ? param : undefined
}
