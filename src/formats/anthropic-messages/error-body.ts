import type { JsonObject } from '../../domain/conversation.ts'
import { errorFields } from '../error-fields.ts'
import type { StreamFailure } from '../format.ts'
import { errorTypeOf } from './faults.ts'
import { errorCodeOf } from './threads.ts'

/** An error of our catalogue as this format's clients read it, over HTTP and in a stream; `signals` are those of contract 4.4 and 4.5. */
export function errorBody(failure: StreamFailure, signals: JsonObject = {}): JsonObject {
  const { code, message, param, requestId } = failure
  const error = {
    ...errorFields(failure),
    type: errorTypeOf(failure),
    ...signals,
    // Where Anthropic's SDK looks for what it shows as `errorCode`.
    details: { error_code: errorCodeOf(code, param) },
  }
  // With `message` out here that SDK's own message is our sentence; else it would be all of this as JSON (contract 4.2).
  return { type: 'error', error, request_id: requestId, message }
}
