import type { ErrorCode, ServiceError } from '../../domain/errors.ts'

/** Errors that are sent only as messages on a WebSocket, to programs that use one (contract 14.3). */
export const socketCodes: readonly ErrorCode[] = ['websocket_connection_limit_reached', 'websocket_queue_full']

/** The error that only the last event of a stream carries, because it needs a part of an answer (contract 4.55). */
export const streamCode: ErrorCode = 'upstream_broken'

/** Statuses that opencode retries, besides all from 500. */
const retriedByOpencode = [408, 409, 429]

/**
 * One row per client: its name, and what it does with this error, observed with the versions and configurations in
 * docs/clients.md for at least one error of each kind. Empty for errors on WebSockets.
 */
export function clientWords(error: ServiceError): readonly (readonly [client: string, words: string])[] {
  if (socketCodes.includes(error.code)) return []
  // Of these clients, only Codex opens WebSockets on its own.
  if (error.code === 'upgrade_required') return [['Codex', 'continues over HTTP']]
  return [
    ['OpenAI SDK', sdkWords(error)],
    ['Codex', codexWords(error)],
    ['Claude Code', claudeWords(error)],
    ['opencode', opencodeWords(error)],
  ]
}

/** The SDK does what `X-Should-Retry` says, whatever the status is. */
function sdkWords({ code, entry, facts }: ServiceError): string {
  if (code === streamCode) return 'throws with our message while your program reads the stream, and does not retry'
  if (!entry.retryable)
    return 'throws immediately, with our message in `error.message`, the code in `error.code`, and the request ID in `error.requestID` (in Python, `error.request_id`)'
  return facts.retryAfterSeconds === undefined
    ? 'retries twice within a few seconds, then throws with our message'
    : 'retries twice, waiting as `Retry-After` says, then throws with our message'
}

/** Codex does not read `X-Should-Retry`. */
function codexWords({ code, status }: ServiceError): string {
  if (status === 400) return 'stops after one request and prints the raw response body'
  if (status === 404) return 'stops after one request and prints our message'
  if (status === 429)
    return 'sends the request three times, waiting as `Retry-After` says, then prints “exceeded retry limit” and the request ID, without our message'
  if (code === 'server_is_overloaded')
    return 'sends the request six times, waiting as `Retry-After` says, then prints “Selected model is at capacity” instead of our message'
  if (status === 500)
    return 'sends the request six times, then prints “We’re currently experiencing high demand” instead of our message'
  const times = status < 500 || code === streamCode ? 'three' : 'six'
  return `sends the request ${times} times, then prints our message and the request ID`
}

function claudeWords({ code, status, entry }: ServiceError): string {
  if (code === streamCode) return 'sends the request up to three more times, then prints its own message'
  if (status === 404)
    return 'stops with its own message; check the model name, and that the base URL does not include `/v1`'
  if (status === 413) return 'stops with its own message about the size of the request'
  if (status === 401 || status === 403) return 'stops and prints “Failed to authenticate.”, then our message'
  return entry.retryable ? 'sends the request three times, then prints our message' : 'stops and prints our message'
}

/** opencode does not read `X-Should-Retry`. */
function opencodeWords({ status }: ServiceError): string {
  if (status === 404)
    return 'stops and prints our message; for a model missing from its configuration, only “Unexpected server error”'
  return status >= 500 || retriedByOpencode.includes(status)
    ? 'sends the request up to six times, which can take two minutes, then prints our message'
    : 'stops and prints our message'
}
