import type { Clock } from '../runtime/clock.ts'
import type { AnswerEvent } from '../domain/conversation.ts'
import type { FusionMember, FusionPort } from '../gateway/fusion/engine/ports.ts'

/** A model that can be a member. */
export interface EvalCandidate extends FusionMember {
  /** Whether it only pretends to be a model; its price is pretended too. */
  readonly simulated: boolean
}

/** A member whose price is known: nothing is asked of one without. */
export interface EvalMember extends EvalCandidate {
  readonly price: NonNullable<FusionMember['price']>
}

/** The way to an account's models, as the service goes it. */
export interface OpenedModels {
  readonly candidates: readonly EvalCandidate[]
  readonly callModel: FusionPort['callModel']
  close(): Promise<void>
}

/** What an evaluation needs of the world: calls as fusion makes them, time, and where to keep what was answered. */
export interface EvalPort {
  readonly clock: Clock
  readonly callModel: FusionPort['callModel']
  readonly journal: Journal
}

/** One call that was answered. `key` tells the member, what was asked, and for the how manieth time; nothing of it is secret. */
export interface AnsweredCall {
  readonly key: string
  readonly events: readonly AnswerEvent[]
  readonly ms: number
  readonly usd: number
}

/** Keeps every call as it is made, so that what was paid for once is never asked again. Each method is done when it returns. */
export interface Journal {
  /** Before a call: what it may cost at most. */
  began(key: string, worstUsd: number): void
  answered(call: AnsweredCall): void
  /** A call that gave nothing, and what it cost at most. */
  failed(key: string, usd: number): void
  /** Who was found to be the best, before the questions that this is used for are asked. */
  choseBest(memberId: string): void
}

/** What a journal held when an evaluation is gone on with. */
export interface Kept {
  readonly answered: ReadonlyMap<string, AnsweredCall>
  /** US dollars, the worst case of calls whose end is not known among it. */
  readonly spentUsd: number
  readonly best?: string
}

/** Why an evaluation cannot go on. What it has answered until then stands. */
export class EvaluationStop extends Error {
  override readonly name = 'EvaluationStop'
  /** `unanswered`: a member failed several times in a row. `calls`: as many calls were made as were foretold at most. */
  readonly reason: 'money' | 'credentials' | 'asked' | 'unanswered' | 'calls'
  /** Whose credentials were rejected, or who does not answer. */
  readonly member: string | undefined
  /** How the last of the failed calls ended. */
  readonly outcome: string | undefined

  constructor(reason: EvaluationStop['reason'], member?: string, outcome?: string) {
    super(reason)
    this.reason = reason
    this.member = member
    this.outcome = outcome
  }
}
