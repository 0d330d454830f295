import type { JsonObject } from '../domain/conversation.ts'
import type { StreamFailure } from './format.ts'

/**
 * What clients of one format expect of HTTP around a request and its answer: data and pure functions, so that nothing in
 * `http/` asks which format it serves.
 */
export interface ClientManners {
  /** The body of a refused request: whatever its shape, it has every field of contract 4.1. */
  writeRefusal(refusal: Refusal): JsonObject
  /** Where these clients look for the request's id, besides `X-Request-Id`. */
  readonly requestIdHeader?: string
  /** Whether these clients put `/v1` behind the base URL that they are given, so that theirs goes without it. */
  readonly addVersion: boolean
  /** Where these clients ask how many tokens a request has, if they can. */
  readonly tokenCount?: TokenCount
}

/** An endpoint that tells how long a request is, and answers nothing (contract 5.15, 6.10). */
export interface TokenCount {
  /** Below our base URL. */
  readonly path: string
  /** The answer's body. */
  write(inputTokens: number): JsonObject
}

/** Everything that a refusal tells, before it has a shape (contract 4.1). */
interface Refusal extends StreamFailure {
  /** The signals of contract 4.4 and 4.5 that apply, `resets_at`, `attempts` and `passed_by`, by the names under which callers read them. */
  readonly signals: JsonObject
}
