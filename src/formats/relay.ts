import type { Conversation } from '../domain/conversation.ts'
import { type JsonObject, objectOf } from '../domain/json.ts'
import { fusionToolType } from '../domain/profiles.ts'
import { isArray } from './fields.ts'
import type { AnswerContext, Dialect, WriteTarget } from './format.ts'
import type { StreamFailure } from './stream-failure.ts'
import type { EncryptedReasoningRules } from './encrypted-reasoning.ts'

/** Members of a request's outermost object to replace, as JSON text; `undefined` leaves a member out. */
export type RequestChanges = Record<string, string | undefined>

/**
 * What the relay lane must know of a format (contract 35.3): how to touch as little as possible of a request and
 * of an answer that stay in the same format. What is absent, the format does not have.
 */
export interface RelayRules {
  /**
   * Whether an endpoint takes such a request as it is, but for the changes; where not it is translated, in its own format
   * too. Absent where every endpoint does.
   */
  fits?(body: JsonObject, dialect: Dialect): boolean
  /** What is changed in requests of this format besides what is changed in all. @see relayChanges */
  requestChanges?(body: JsonObject, conversation: Conversation, target: WriteTarget): RequestChanges
  /** Headers of the request, in lower case, that say how its body is to be read and so go with it. */
  readonly passedHeaders?: readonly string[]
  /** Where requests and answers have what providers seal for themselves. */
  readonly encryptedReasoning?: EncryptedReasoningRules
  /** Where a request has what users say: the list of messages, and the type of a part that is text. */
  readonly words?: { readonly member: string; readonly part: string }
  /**
   * The members of a response object (`response` of an event, or a whole answer) to replace, as JSON text, where what
   * its provider says of it is not so here: under which id it is kept, if at all. Undefined where nothing is.
   */
  responsePatches?(response: JsonObject, context: AnswerContext): Record<string, string> | undefined
  /** How streams are relayed; absent where nothing is streamed. */
  readonly stream?: StreamRules
}

/** What the relay lane must know of a format's streams. */
export interface StreamRules {
  /**
   * Members whose string values are all that differs between events that only say more. An event that differs in anything
   * else from those before it is read.
   */
  readonly deltas: readonly string[]
  /** What follows the last event of every stream, such as `data: [DONE]`; empty where the format has no such thing. */
  readonly ending: string
  /** Whether events carry a `sequence_number`, which events of our own must go on from. */
  readonly numbered: boolean
  /** Whether an event may follow the end of an answer (its parsed data given); absent where none may. */
  followsEnd?(data: JsonObject): boolean
  /** Whether an event is only there because we asked for usage and the caller did not (its parsed data given). */
  isUnrequested?(data: JsonObject, conversation: Conversation): boolean
  /** Whether this event is where `svc_router` stands: in its `response` where it has one, else beside its other members. */
  carriesReport(data: JsonObject, conversation: Conversation): boolean
  /** What the stream itself has told, for ending it in its own terms. */
  observe?(data: JsonObject, memory: RelayState): void
  /** What keeps the stream alive, or undefined where that needs an event that no backend has sent yet. */
  keepAlive(memory: RelayState): string | undefined
  /** Ends a stream that broke (contract 10). */
  failure(failure: StreamFailure, memory: RelayState): string
}

/** What one relayed stream has shown of itself so far. */
export interface RelayState {
  /** The `response` object of `response.created`, on the Responses format. */
  response?: JsonObject
  /** Whether an item of the answer was begun, on the Responses format. */
  hasItems?: boolean
  /** On chat, the numbers of the choices that have finished: with `n` above 1 the first to finish is not the end. */
  finishedChoices?: Set<unknown>
  /** The last `sequence_number` that was sent. */
  sequence: number
  /** How many events of our own were put between: later numbers rise by as many. */
  inserted: number
}

/** Everything that is changed in a request that is relayed to that backend. */
export function relayChanges(
  rules: RelayRules,
  body: JsonObject,
  conversation: Conversation,
  target: WriteTarget,
): RequestChanges {
  const changes: RequestChanges = { model: JSON.stringify(target.model) }
  if (conversation.fusionTool !== undefined) Object.assign(changes, withoutFusionTool(body))
  if (rules.requestChanges !== undefined) Object.assign(changes, rules.requestChanges(body, conversation, target))
  for (const field of target.dialect.refusedFields) changes[field] = undefined
  return changes
}

/** The changes that take our own server tool out of a request: no provider knows it (contract 11.1). */
function withoutFusionTool({ tools }: JsonObject): RequestChanges {
  if (!isArray(tools)) return {}
  const others = tools.filter((tool) => objectOf(tool)['type'] !== fusionToolType)
  if (others.length > 0) return { tools: JSON.stringify(others) }
  return { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined }
}
