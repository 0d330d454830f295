import type { JsonObject } from '../../domain/json.ts'
import type { StreamFailure } from '../stream-failure.ts'
import { errorBody } from './error-body.ts'

/** Keeps a stream alive: clients ignore it at any position. */
export const pingFrame = 'event: ping\ndata: {"type":"ping"}\n\n'

/** One event of a stream; `fields` follow its `type`. */
export function frame(type: string, fields: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

/** Ends a failed stream: nothing that looks like success may follow it (contract 10.4). */
export function failureFrame(failure: StreamFailure): string {
  return frame('error', errorBody(failure))
}
