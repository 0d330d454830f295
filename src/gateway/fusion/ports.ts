import type { CallRole } from '../../domain/fusion-record.ts'
import type { Clock } from '../../domain/clock.ts'
import type { AnswerEvent, Conversation } from '../../domain/conversation.ts'
import type { FusionMemo } from '../../domain/fusion-memo.ts'
import type { ModelFacts, UsdPerMillion } from '../../domain/model-facts.ts'
import type { RandomBytes } from '../../domain/random.ts'

/** One model on one backend, as fusion sees it. Nothing of it ever reaches the caller or another model. */
export interface FusionMember extends Omit<ModelFacts, 'quality' | 'usdPerMillion'> {
  /** The backend's id, unique among the members of one request. */
  readonly id: string
  readonly model: string
  /** Models of one family share their mistakes: see `familyOf`. */
  readonly family: string
  /** What fails together with it, usually the provider. */
  readonly failureDomain: string
  /** How good the model is held to be, 0 to 100; the same for all where nobody said. */
  readonly quality: number
  /** US dollars for a million tokens; absent where it is not known. */
  readonly price?: UsdPerMillion
  /** Milliseconds within which nine of ten of its answers are complete; absent where too few were seen. */
  readonly slowAfterMs?: number
}

/** One sub-call. `conversation.stream` says whether events are wanted as they come, or one whole answer. */
export interface SubCall {
  readonly role: CallRole
  readonly conversation: Conversation
}

/** A model's answer: what arrived together, in order, or all of it at once. */
export type ModelAnswer = AsyncIterable<readonly AnswerEvent[]> | Promise<readonly AnswerEvent[]>

/**
 * Everything that fusion needs of the world: with a manual clock, seeded bytes and simulated models the same code runs
 * without any network (contract 35.8).
 */
export interface FusionPort {
  /**
   * Asks one model. Trouble is thrown as UpstreamError, what its format cannot say as ServiceError; anything else is a
   * bug. Silence within an answer is its matter (contract 9.5). When the signal is aborted the call's connection is closed at once (contract 9.10); what it still says is dropped.
   */
  callModel(member: FusionMember, call: SubCall, signal: AbortSignal): ModelAnswer
  readonly clock: Clock
  /** Unpredictable bytes. What a caller's `seed` fixes is not drawn from them. */
  readonly random: RandomBytes
  /** Keeps what the turn leaves for those that follow; gives what the caller is to send back, sealed, if anything. */
  remember?(memo: FusionMemo): string | undefined
  /** Takes what belongs to the caller's answer and is no content of it yet, such as how far it is; `emit` where absent. */
  tell?(events: readonly AnswerEvent[]): void
  /** Takes the next events of the caller's answer. A promise means that the reader is slow: nothing follows before it resolves. */
  emit(events: readonly AnswerEvent[]): Promise<void> | undefined
}
