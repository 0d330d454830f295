import type { RequestRouting } from '../../domain/routing-policy.ts'
import type { AnswerContext } from '../../formats/format.ts'
import type { SessionTurn } from '../cache/session-turn.ts'
import type { Admission, AnswerSink, Backend, AllowedRequest } from '../ports.ts'
import type { ResponsePersister } from '../responses/response-persister.ts'
import type { AnswerSource } from './answer-source.ts'

/** One admitted request and everything that it owns. */
export interface RequestRunOptions {
  readonly request: AllowedRequest
  readonly accountId: string
  readonly context: AnswerContext
  readonly backends: readonly Backend[]
  /** Those of them that probably cannot answer. */
  readonly doubtful?: ReadonlySet<Backend> | undefined
  /** How to choose among them. */
  readonly routing: RequestRouting
  /** The request as a turn of its session; absent if no provider caches its prompt. */
  readonly session?: SessionTurn | undefined
  readonly admission: Admission
  readonly units: number
  readonly sink: AnswerSink
  /** Time limit for the whole request, milliseconds (contract 9.6). */
  readonly totalMs: number
  /** Persists the answer; undefined if it is not stored. */
  readonly persister: ResponsePersister | undefined
  /** Whether the answer's `model` names the backend's model (contract 2.31). */
  readonly reportsModel?: boolean | undefined
  /** Whether an answer says what it cost: in its head, or at the end of a stream (contract 42.11). */
  readonly reportsCost?: boolean | undefined
  /** Where the answer comes from; failover over `backends` if absent. */
  readonly source?: AnswerSource | undefined
}
