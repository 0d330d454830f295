import type { AnswerEvent, Conversation } from '../../../domain/conversation.ts'
import type { FusionMemo } from '../../../domain/fusion-memo.ts'
import type { CallRole } from '../../../domain/fusion-record.ts'
import type { ModelFacts } from '../../../domain/model-facts.ts'
import type { TokenPrice } from '../../../domain/token-price.ts'
import type { Clock } from '../../../runtime/clock.ts'
import type { RandomBytes } from '../../../runtime/random.ts'

/** One model on one backend, from fusion's point of view. None of this ever reaches the caller or another model. */
export interface FusionMember extends Omit<ModelFacts, 'quality' | 'usdPerMillion'> {
  /** The backend's id, unique among the members of one request. */
  readonly id: string
  readonly model: string
  /** Models of one family share their mistakes: see `familyOf`. */
  readonly family: string
  /** Names what fails together with it, usually the provider. */
  readonly failureDomain: string
  /** The assumed quality of the model, 0 to 100; the same for all if none is rated. */
  readonly quality: number
  /** Absent if unknown. */
  readonly price?: TokenPrice
  /** The 90th percentile of its time to a complete answer, milliseconds; absent if too few were seen. */
  readonly slowAfterMs?: number
}

/** One sub-call. `conversation.stream` says whether to deliver events as they arrive, or one whole answer. */
export interface SubCall {
  readonly role: CallRole
  readonly conversation: Conversation
}

/** A model's answer: batches of events as they arrived, in order, or all of it at once. */
export type ModelAnswer = AsyncIterable<readonly AnswerEvent[]> | Promise<readonly AnswerEvent[]>

/**
 * Everything that fusion needs from outside: with a manual clock, seeded bytes, and simulated models the same code
 * runs without a network (contract 35.8).
 */
export interface FusionPort {
  /**
   * Calls one model. Throws UpstreamError for failures and ServiceError for a request that its format cannot express;
   * anything else is a bug. Enforces the silence limit within an answer (contract 9.5). When the signal is aborted,
   * the call's connection is closed at once (contract 9.10) and its later events are dropped.
   */
  callModel(member: FusionMember, call: SubCall, signal: AbortSignal): ModelAnswer
  readonly clock: Clock
  /** Cryptographically secure bytes. Not used for choices that a caller's `seed` determines. */
  readonly random: RandomBytes
  /**
   * Stores what this request leaves for later ones; returns the encrypted value that the caller is to send back, if
   * any.
   */
  remember?(memo: FusionMemo): string | undefined
  /** Takes events that belong to the caller's answer but are not content, such as progress; `emit` if absent. */
  emitProgress?(events: readonly AnswerEvent[]): void
  /** Takes the next events of the caller's answer. A promise means that the reader is slow: wait until it resolves. */
  emit(events: readonly AnswerEvent[]): Promise<void> | undefined
}
