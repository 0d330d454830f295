import { type Json, isObject } from '../../domain/json.ts'
import { UpstreamError, type AttemptOutcome } from '../../domain/upstream.ts'
import { classifyAnswerError, classifyByMessage, refusalIn } from '../answer-faults.ts'
import { readError } from '../rejections/rejection-body.ts'
import type { StreamFailure } from '../stream-failure.ts'

/** The outcome for each of this format's own error types; those shared with other formats are in `answer-faults`. */
const outcomes = new Map<Json | undefined, Exclude<AttemptOutcome, 'answered'>>([
  ['invalid_request_error', 'rejected_content'],
  ['request_too_large', 'rejected_content'],
  ['authentication_error', 'rejected_credentials'],
  ['permission_error', 'rejected_credentials'],
  ['billing_error', 'rejected_credentials'],
  ['timeout_error', 'timeout'],
])

/** Classifies an error event; its message is read and dropped (contract 35.5). */
export function classifyMessagesError(error: Json | undefined): UpstreamError {
  const refusal = refusalIn(readError(error))
  if (refusal !== undefined) return refusal
  const outcome = isObject(error) ? (classifyByMessage(error) ?? outcomes.get(error['type'])) : undefined
  return outcome === undefined ? classifyAnswerError(error) : new UpstreamError(outcome)
}

/** This format's error types for the catalog's types and codes; all others are `api_error`. */
const errorTypes = new Map([
  ['invalid_request_error', 'invalid_request_error'],
  ['authentication_error', 'authentication_error'],
  ['permission_error', 'permission_error'],
  ['edge_error', 'permission_error'],
  ['rate_limit_error', 'rate_limit_error'],
  ['insufficient_quota', 'billing_error'],
  ['not_found', 'not_found_error'],
  ['model_not_found', 'not_found_error'],
  ['item_not_found', 'not_found_error'],
  ['payload_too_large', 'request_too_large'],
  ['server_is_overloaded', 'overloaded_error'],
  ['server_busy', 'overloaded_error'],
  ['load_shed', 'overloaded_error'],
  ['restarting', 'overloaded_error'],
  ['upstream_timeout', 'timeout_error'],
])

/** `error.type` in this format for a catalog error, chosen by its code, then by its type. */
export function errorTypeOf({ code, type }: Pick<StreamFailure, 'code' | 'type'>): string {
  return errorTypes.get(code) ?? errorTypes.get(type) ?? 'api_error'
}
