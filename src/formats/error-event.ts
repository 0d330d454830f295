import type { AnswerEvent, Json, JsonObject } from '../domain/conversation.ts'
import { isObject, parseObject } from '../domain/json.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { answerFault } from './answer-faults.ts'
import type { AnswerReader } from './format.ts'
import type { SseEvent } from './sse.ts'

/** Gives an event to its reader. @throws UpstreamError as `readEvent` does, and for an event that is malformed */
export function readSse(reader: AnswerReader, { data, event, malformed }: SseEvent): readonly AnswerEvent[] {
  if (malformed === true) throw new UpstreamError('broken')
  return reader.readEvent(data, event)
}

type Fault = (error: Json | undefined) => UpstreamError

/** Throws for an event that is named `error`, whatever its data is: `{"error": …}`, `{"message": …}`, text. @throws UpstreamError */
export function refuseNamedError(name: string | undefined, data: string, fault: Fault = answerFault): void {
  if (name === 'error') throw fault(errorIn(parseObject(data)))
}

/** Throws for an object that has an error as a member, or is one. @throws UpstreamError */
export function refuseError(object: JsonObject, fault: Fault = answerFault): void {
  const { error, object: kind, type } = object
  if ((error !== undefined && error !== null) || kind === 'error' || type === 'error') throw fault(errorIn(object))
}

/** The error itself: the member `error` where it is an object, else the whole. */
function errorIn(object: JsonObject | undefined): Json | undefined {
  const error = object?.['error']
  return isObject(error) ? error : object
}
