import type { RequestRouting } from '../../domain/routing-policy.ts'
import type { AnswerContext } from '../../formats/format.ts'
import type { Admission, AnswerSink } from '../ports.ts'
import type { ResponsePersister } from '../responses/response-persister.ts'
import type { AnswerSource } from './answer-source.ts'
import type { FailoverOptions } from './failover-deps.ts'

/** One admitted request and everything that it owns. */
export interface RequestRunOptions extends FailoverOptions {
  readonly context: AnswerContext
  readonly routing: RequestRouting
  readonly admission: Admission
  readonly units: number
  readonly sink: AnswerSink
  /** Persists the answer; undefined if it is not stored. */
  readonly persister: ResponsePersister | undefined
  /** Whether the answer's `model` names the backend's model (contract 2.31). */
  readonly reportsModel?: boolean | undefined
  /** Whether an answer says what it cost: in its head, or at the end of a stream (contract 42.11). */
  readonly reportsCost?: boolean | undefined
  /** Where the answer comes from; failover over `backends` if absent. */
  readonly source?: AnswerSource | undefined
}
