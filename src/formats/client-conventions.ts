import type { JsonObject } from '../domain/json.ts'
import type { StreamFailure } from './stream-failure.ts'

/**
 * What clients of one format expect of HTTP around a request and its answer: data and pure functions, so that `http/`
 * never depends on the format.
 */
export interface ClientConventions {
  /** The body of an error: whatever its shape, it has every field of contract 4.1. */
  writeError(error: ErrorContent): JsonObject
  /** The header in which these clients look for the request id, in addition to `X-Request-Id`. */
  readonly requestIdHeader?: string
  /** Whether these clients append `/v1` to their configured base URL, so that it must be given without it. */
  readonly addVersion: boolean
  /** The token counting endpoint of these clients, if there is one. */
  readonly tokenCount?: TokenCount
}

/** An endpoint that counts a request's tokens without answering it (contract 5.15, 6.10). */
export interface TokenCount {
  /** Path below our base URL. */
  readonly path: string
  /** The response body. */
  write(inputTokens: number): JsonObject
}

/** The content of an error before it has a shape (contract 4.1). */
interface ErrorContent extends StreamFailure {
  /**
   * The signals of contract 4.4 and 4.5 that apply, `resets_at`, `attempts` and `passed_by`, under their public names.
   */
  readonly signals: JsonObject
}
