import type { Conversation, JsonObject } from '../domain/conversation.ts'
import type { Wanted } from './earliest.ts'
import type { AnswerContext, Dialect, StreamFailure, WriteTarget } from './format.ts'
import type { Sealing } from './sealed.ts'

/**
 * What the relay lane must know of a format (architecture 5.3): how to touch as little as possible of a request and
 * of an answer that stay in the same format.
 */
export interface RelayRules {
  /**
   * Whether an endpoint takes such a request as it is, but for the changes below; where not it is translated, in its own
   * format too. Absent where every endpoint does.
   */
  fits?(body: JsonObject, dialect: Dialect): boolean
  /** The members of the request's outermost object to replace, as JSON text; `undefined` leaves a member out. */
  requestChanges(body: JsonObject, conversation: Conversation, target: WriteTarget): Record<string, string | undefined>
  /**
   * Finds, in the text of several events, what must be looked at one event at a time once content flows: ends, errors,
   * usage, comments and what is sealed. It may find too much, never too little.
   */
  readonly notable: readonly Wanted[]
  /** Headers of the request, in lower case, that say how its body is to be read and so go with it. Absent where there are none. */
  readonly passedHeaders?: readonly string[]
  /** What follows the last event of every stream, such as `data: [DONE]`; empty where the format has no such thing. */
  readonly ending: string
  /** Where the format has what providers seal for themselves; absent where it has nothing such. */
  readonly sealing?: Sealing
  /** Whether events carry a `sequence_number`, which events of our own must go on from. */
  readonly numbered: boolean
  /** Whether an event is only there because we asked for usage and the caller did not (its parsed data given). */
  isUnasked(data: JsonObject, conversation: Conversation): boolean
  /**
   * The members of a response object (`response` of an event, or a whole answer) to replace, as JSON text, where what
   * its provider says of it is not so here: under which id it is kept, if at all. Undefined where nothing is.
   */
  restated?(response: JsonObject, context: AnswerContext): Record<string, string> | undefined
  /** What the stream itself has told, for ending it in its own terms. */
  observe(data: JsonObject, memory: RelayMemory): void
  /** What keeps the stream alive, or undefined where that needs an event that no backend has sent yet. */
  keepAlive(memory: RelayMemory): string | undefined
  /** Ends a stream that broke (contract 3.4). */
  failure(failure: StreamFailure, memory: RelayMemory): string
}

/** What one relayed stream has shown of itself so far. */
export interface RelayMemory {
  /** The `response` object of `response.created`, on the Responses format. */
  response?: JsonObject
  /** On chat, the numbers of the choices that have finished: with `n` above 1 the first to finish is not the end. */
  finishedChoices?: Set<unknown>
  /** The last `sequence_number` that was sent. */
  sequence: number
  /** How many events of our own were put between: later numbers rise by as many. */
  inserted: number
}

/** `"model":"…"` of any provider, wherever the format has it: the caller reads the profile instead (contract 2.3). */
export const modelMember = /"model"\s*:\s*"[^"\\]*"/g
/** `"sequence_number":7`; renumbered only after events of our own were put between. */
export const sequenceMember = /"sequence_number"\s*:\s*(\d+)/g
