import type { Conversation } from '../domain/conversation.ts'
import { type JsonObject, objectOf } from '../domain/json.ts'
import { fusionToolType } from '../domain/profiles.ts'
import { routingField } from '../domain/routing-policy.ts'
import type { MarkInsertion } from './cache/insert-marks.ts'
import type { EncryptedReasoningRules } from './encrypted-reasoning.ts'
import { isArray } from './fields.ts'
import type { AnswerContext, Dialect, WriteTarget } from './format.ts'
import type { StreamFailure } from './stream-failure.ts'

/** Members of a request's top-level object to replace, as JSON text; `undefined` removes a member. */
export type RequestChanges = Record<string, string | undefined>

/**
 * What the relay lane must know about a format (contract 35.3): how to change as little as possible of requests and
 * answers that stay in the same format. An absent member means that the format has no such thing.
 */
export interface RelayRules {
  /**
   * Whether an endpoint accepts the request with only the usual changes; otherwise it is translated, even into its own
   * format. Absent if every endpoint does.
   */
  fits?(body: JsonObject, dialect: Dialect): boolean
  /** Changes to requests of this format besides those that all formats share. @see relayChanges */
  requestChanges?(body: JsonObject, conversation: Conversation, target: WriteTarget): RequestChanges
  /** Request headers, in lowercase, that affect how the body is read and are therefore forwarded. */
  readonly passedHeaders?: readonly string[]
  /** The cache marks to add to a request of this many bytes (contract 44.3). Absent if the format has none. */
  marks?(body: JsonObject, bytes: number, target: WriteTarget): readonly MarkInsertion[]
  /** Where requests and answers contain values that providers encrypt for themselves. */
  readonly encryptedReasoning?: EncryptedReasoningRules
  /** Where a request contains the users' words: the list of messages, and the type of a text part. */
  readonly words?: { readonly member: string; readonly part: string }
  /**
   * Members of a response object (`response` of an event, or a whole answer) to replace, as JSON text, because the
   * provider's values do not apply here: the id under which it is stored, if at all. Undefined if there are none.
   */
  responsePatches?(response: JsonObject, context: AnswerContext): Record<string, string> | undefined
  /** How streams are relayed; absent if the format has no streams. */
  readonly stream?: StreamRules
}

/** What the relay lane must know about a format's streams. */
export interface StreamRules {
  /**
   * Members whose string values are the only difference between consecutive delta events. An event that differs in
   * anything else is parsed.
   */
  readonly deltas: readonly string[]
  /** What follows the last event of every stream, such as `data: [DONE]`; empty if the format has no such thing. */
  readonly ending: string
  /** Whether events carry a `sequence_number`, which our own events must continue. */
  readonly numbered: boolean
  /** Whether an event may follow the end of an answer, given its parsed data; absent if none may. */
  followsEnd?(data: JsonObject): boolean
  /** Whether an event exists only because we requested usage and the caller did not, given its parsed data. */
  isUnrequested?(data: JsonObject, conversation: Conversation): boolean
  /** Whether this event carries `svc_router`: in its `response` if it has one, otherwise next to its other members. */
  carriesReport(data: JsonObject, conversation: Conversation): boolean
  /** Observes what the stream contains, so that it can be ended in its own terms. */
  observe?(data: JsonObject, memory: RelayState): void
  /** A keep-alive for the stream; undefined if that requires an event that no backend has sent yet. */
  keepAlive(memory: RelayState): string | undefined
  /** Ends a stream that failed (contract 10). */
  failure(failure: StreamFailure, memory: RelayState): string
  /** Ends a stream that was canceled. Only responses in the background can be. */
  canceled?(memory: RelayState): string
}

/** The state of one relayed stream. */
export interface RelayState {
  /** The `response` object of `response.created`, in the Responses format. */
  response?: JsonObject
  /** Whether an item of the answer has begun, in the Responses format. */
  hasItems?: boolean
  /** In chat, the indexes of finished choices: with `n` above 1, the first to finish does not end the answer. */
  finishedChoices?: Set<unknown>
  /** The last `sequence_number` sent. */
  sequence: number
  /** How many of our own events were inserted: later numbers increase by this much. */
  inserted: number
}

/** All changes to a request that is relayed to a backend. */
export function relayChanges(
  rules: RelayRules,
  body: JsonObject,
  conversation: Conversation,
  target: WriteTarget,
): RequestChanges {
  const changes: RequestChanges = { model: JSON.stringify(target.model) }
  if (conversation.fusionTool !== undefined) Object.assign(changes, withoutFusionTool(body))
  if (Object.hasOwn(body, routingField)) changes[routingField] = undefined
  if (rules.requestChanges !== undefined) Object.assign(changes, rules.requestChanges(body, conversation, target))
  const key = target.cache?.key
  if (key !== undefined && body['prompt_cache_key'] !== key) changes['prompt_cache_key'] = JSON.stringify(key)
  for (const field of target.dialect.refusedFields) changes[field] = undefined
  return changes
}

/** The changes that remove our own server tool from a request: no provider supports it (contract 11.1). */
function withoutFusionTool({ tools }: JsonObject): RequestChanges {
  if (!isArray(tools)) return {}
  const others = tools.filter((tool) => objectOf(tool)['type'] !== fusionToolType)
  if (others.length > 0) return { tools: JSON.stringify(others) }
  return { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined }
}
