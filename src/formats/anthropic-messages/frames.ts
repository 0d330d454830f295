import type { JsonObject } from '../../domain/conversation.ts'
import { errorFields } from '../error-fields.ts'
import type { StreamFailure } from '../format.ts'
import { errorTypeOf } from './faults.ts'

/** What keeps a stream alive: clients pass it over wherever it stands. */
export const pingFrame = 'event: ping\ndata: {"type":"ping"}\n\n'

/** One event of a stream; `fields` follow its `type`. */
export function frame(type: string, fields: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

/** Ends a stream that broke: nothing that looks like success may follow it (contract 3.4). */
export function failureFrame(failure: StreamFailure): string {
  const error = { ...errorFields(failure), type: errorTypeOf(failure) }
  return frame('error', { error, request_id: failure.requestId })
}
