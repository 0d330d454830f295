import type { Json, JsonObject } from '../domain/conversation.ts'
import { UpstreamError, type AttemptOutcome } from '../domain/upstream.ts'
import { isObject } from './fields.ts'

/** An answer of which more than this has been read is not one: its events may not fill the memory. */
export const maxAnswerCharacters = 64 * 1024 * 1024

/** What providers call these faults in an error's `code` or `type`. */
const outcomes = new Map<Json | undefined, Exclude<AttemptOutcome, 'answered'>>([
  ['context_length_exceeded', 'context_too_long'],
  ['context_window_exceeded', 'context_too_long'],
  ['rate_limit_exceeded', 'rate_limited'],
  ['rate_limit_error', 'rate_limited'],
  ['rate_limited', 'rate_limited'],
  ['too_many_requests', 'rate_limited'],
  ['insufficient_quota', 'rate_limited'],
  [429, 'rate_limited'],
  ['429', 'rate_limited'],
])

/** Reads the data of one event. @throws UpstreamError `broken` for what is not a JSON object */
export function parseEventData(data: string): JsonObject {
  let value: Json
  try {
    value = JSON.parse(data) as Json
  } catch {
    throw new UpstreamError('broken')
  }
  if (!isObject(value)) throw new UpstreamError('broken')
  return value
}

/** The category of an error that came inside an answer; its text is left behind (architecture 8). */
export function answerFault(error: Json | undefined): UpstreamError {
  if (!isObject(error)) return new UpstreamError('server_error')
  return new UpstreamError(outcomes.get(error['code']) ?? outcomes.get(error['type']) ?? 'server_error')
}
