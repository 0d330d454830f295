import type { AnswerEvent } from '../domain/conversation.ts'
import type { FusionMember, FusionPort } from '../gateway/fusion/engine/ports.ts'
import type { Clock } from '../runtime/clock.ts'

/** A model that can be a member. */
export interface EvalCandidate extends FusionMember {
  /** Whether the model is simulated. Its price is simulated, too. */
  readonly simulated: boolean
}

/** A member with a known price; others are never called. */
export interface EvalMember extends EvalCandidate {
  readonly price: NonNullable<FusionMember['price']>
}

/** Access to an account's models, in the same way as the service. */
export interface OpenedModels {
  readonly candidates: readonly EvalCandidate[]
  readonly callModel: FusionPort['callModel']
  close(): Promise<void>
}

/** The dependencies of an evaluation: model calls as in fusion, time, and a journal. */
export interface EvalPort {
  readonly clock: Clock
  readonly callModel: FusionPort['callModel']
  readonly journal: Journal
}

/** An answered call. `key` identifies the member, the request, and the repetition. Nothing in it is secret. */
export interface AnsweredCall {
  readonly key: string
  readonly events: readonly AnswerEvent[]
  readonly ms: number
  readonly usd: number
}

/** Records every call, so that paid answers are never requested again. Methods return after the line is written. */
export interface Journal {
  /** Before a call, with its worst-case cost. */
  began(key: string, worstUsd: number): void
  answered(call: AnsweredCall): void
  /** A call without an answer, and its worst-case cost. */
  failed(key: string, usd: number): void
  /** Which member was the best, before the questions that depend on it are asked. */
  choseBest(memberId: string): void
}

/** The journal's content when an evaluation is continued. */
export interface Kept {
  readonly answered: ReadonlyMap<string, AnsweredCall>
  /** US dollars, including the worst case of calls without a recorded end. */
  readonly spentUsd: number
  readonly best?: string
}

/** Why an evaluation cannot continue. Results up to then remain valid. */
export class EvaluationStop extends Error {
  override readonly name = 'EvaluationStop'
  /** `unanswered`: a member failed several times in a row. `calls`: the announced maximum number of calls was made. */
  readonly reason: 'money' | 'credentials' | 'asked' | 'unanswered' | 'calls'
  /** The member whose credential was rejected, or that does not answer. */
  readonly member: string | undefined
  /** The outcome of the last failed call. */
  readonly outcome: string | undefined

  constructor(reason: EvaluationStop['reason'], member?: string, outcome?: string) {
    super(reason)
    this.reason = reason
    this.member = member
    this.outcome = outcome
  }
}
