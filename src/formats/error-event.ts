import type { AnswerEvent, Usage } from '../domain/conversation.ts'
import { type Json, type JsonObject, parseObject } from '../domain/json.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { classifyAnswerError } from './answer-faults.ts'
import type { AnswerReader } from './format.ts'
import { namesFault, reportedError } from './reported-error.ts'
import type { SseEvent } from './sse.ts'

/** Passes an event to its reader. @throws UpstreamError as `readEvent` does, and for a malformed event */
export function readSse(reader: AnswerReader, { data, event, malformed }: SseEvent): readonly AnswerEvent[] {
  if (malformed === true) throw new UpstreamError('broken')
  return reader.readEvent(data, event)
}

/** The usage in what a reader just threw for, if there is any. `earlier` is its last data before that. */
export function failedUsage(reader: AnswerReader, earlier: JsonObject | undefined): Usage | undefined {
  const { lastData } = reader
  return lastData === undefined || lastData === earlier ? undefined : reader.usageIn(lastData)
}

type Fault = (error: Json | undefined) => UpstreamError

/**
 * Throws for an event named `error`, whatever its data: `{"error": …}`, `{"message": …}`, text. @throws UpstreamError
 */
export function throwNamedError(name: string | undefined, data: string, fault: Fault = classifyAnswerError): void {
  if (name !== 'error') return
  const event = parseObject(data)
  throw fault(event && (reportedError(event) ?? event))
}

/** Throws for an object that is or contains an error, in the convention of any vendor. @throws UpstreamError */
export function throwError(object: JsonObject, fault: Fault = classifyAnswerError): void {
  const error = reportedError(object)
  if (error !== undefined) throw fault(error)
}

const keepAliveNames = new Set(['ping', 'keepalive', 'keep-alive', 'heartbeat'])
/** Members of an error object in any convention. */
const faultMembers = ['error', 'errors', 'message', 'msg', 'detail', 'details', 'status', 'code', 'title', 'reason']
/** Members of an answer. */
const answerMembers = ['choices', 'candidates', 'response']

/**
 * Whether an event of a format without event types is neither part of an answer nor an error, such as a ping or a
 * vendor's own event: its name, `object`, or `type` identifies it, and it has no member of an error or an answer
 * (contract 10.8).
 */
export function isForeign(name: string | undefined, event: JsonObject): boolean {
  const has = (member: string): boolean => Object.hasOwn(event, member)
  if (faultMembers.some(has) || answerMembers.some(has)) return false
  if (name !== undefined && keepAliveNames.has(name)) return true
  const kind = event['object'] ?? event['type']
  return typeof kind === 'string' && kind !== '' && !namesFault(kind)
}
