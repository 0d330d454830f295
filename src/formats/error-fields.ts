import type { JsonObject } from '../domain/json.ts'
import type { StreamFailure } from './stream-failure.ts'

/** The error object that ends a stream: the fields of an error body that are known at that point (contract 4.1). */
export function errorFields({ message, type, param, code, source, retryable, requestId }: StreamFailure): JsonObject {
  return { message, type, param, code, source, retryable, request_id: requestId }
}
