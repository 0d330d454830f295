import type { JsonObject } from '../../domain/json.ts'
import { errorFields } from '../error-fields.ts'
import type { StreamFailure } from '../stream-failure.ts'
import { errorTypeOf } from './faults.ts'
import { errorCodeOf } from './reject-thread.ts'

/**
 * An error of the catalog in this format, over HTTP and in a stream (contract 4.7); `signals` are those of contract 4.4
 * and 4.5.
 */
export function errorBody(failure: StreamFailure, signals: JsonObject = {}): JsonObject {
  const { code, message, param, requestId } = failure
  const error = {
    ...errorFields(failure),
    type: errorTypeOf(failure),
    ...signals,
    // Anthropic's SDK reads its `errorCode` from here.
    details: { error_code: errorCodeOf(code, param) },
  }
  // With a top-level `message` that SDK's error message is our sentence; otherwise it would be this whole object as
  // JSON (contract 4.2).
  return { type: 'error', error, request_id: requestId, message }
}
