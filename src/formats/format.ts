import type { AnswerEvent, Conversation, Usage } from '../domain/conversation.ts'
import type { ClientFormatId, FormatId } from '../domain/format-id.ts'
import type { Json, JsonObject } from '../domain/json.ts'
import type { MarkOptions } from './cache/plan-marks.ts'
import type { ClientConventions } from './client-conventions.ts'
import type { StreamFailure } from './stream-failure.ts'

export type { ClientFormatId, FormatId } from '../domain/format-id.ts'

/** A wire format of providers: the two pure functions for the provider side (contract 35.2). */
export interface ProviderFormat {
  readonly id: FormatId
  /**
   * Whether encrypted reasoning is readable only by the model that produced it; absent if all models of a provider can
   * read it.
   */
  readonly sealsByModel?: boolean
  /** Whether requests have the arguments of tool calls as JSON, not as text, so that they must be parsed. */
  readonly parsesArguments?: boolean
  /** Path below a provider's base URL, with a query if the format needs one: `/chat/completions`. */
  upstreamPath(model: string, stream: boolean): string
  /**
   * The request body for a provider. @throws ServiceError `unsupported_parameter` if this format cannot express the
   * request
   */
  writeRequest(conversation: Conversation, target: WriteTarget): JsonObject
  /** Reads one provider answer, streamed or whole. One reader per answer. */
  readAnswer(): AnswerReader
}

/** How requests of a format limit the length of an answer. */
export interface OutputLimit {
  /** The members of a body that set this limit, in tokens; undefined ones are removed. */
  members(limit: number): Readonly<Record<string, Json | undefined>>
  /** Whether every request has a limit, so that it does not say that the caller needs that much. */
  readonly isRequired?: boolean
}

/**
 * A wire format of clients and providers: four pure functions over one `Conversation` and one union of `AnswerEvent`s
 * (contract 35.2). Writing and then reading returns the original, for everything that both sides can express.
 */
export interface Format extends ProviderFormat {
  readonly id: ClientFormatId
  /** The clients' path below our base URL: `/chat/completions`. */
  readonly path: string
  /** The request's field with the conversation or other input, for errors about its content. */
  readonly inputField: string
  /** Absent if answers are not written. */
  readonly outputLimit?: OutputLimit
  /** Whether answers are stored, so that a later request may continue them (contract 12.1). */
  readonly storesAnswers?: boolean
  /** Whether answers have items for calls of the service's own tools. */
  readonly hasServiceCalls?: boolean
  /** Whether an answer has one text, which progress does not end; otherwise progress is an item that ends the text. */
  readonly hasOneText?: boolean
  /** What its clients expect of HTTP besides the body. */
  readonly conventions: ClientConventions
  /** The clients' name for a field that an error names by another format's word: `input`, `messages`, `stop`. */
  readonly fieldNames?: Readonly<Record<string, string>>
  /**
   * Parses a client's body. Lenient: unknown fields are kept or skipped. @throws ServiceError `invalid_request` with
   * `param`
   */
  readRequest(body: JsonObject): Conversation
  /** Writes one answer to a client, streamed or whole. One writer per answer. */
  writeAnswer(context: AnswerContext): AnswerWriter
}

/** Differences between endpoints of one format, from the provider's registry entry. */
export interface Dialect {
  /** The name of the answer length limit on chat. */
  readonly maxTokensField: 'max_completion_tokens' | 'max_tokens'
  /** Whether `developer` messages are supported; if not they are sent as `system`. */
  readonly developerRole: boolean
  /** Whether `stream_options.include_usage` is supported. */
  readonly streamUsage: boolean
  /** Whether the model wants its earlier reasoning back (`reasoning_content` on chat); if absent, it is left out. */
  readonly replaysReasoning?: boolean
  /**
   * For a Responses endpoint that supports only functions of OpenAI's client tools: the types of hosted tools it runs.
   * Custom and namespaced tools are sent to it as functions, other hosted tools are left out. Absent if all tool types
   * are supported.
   */
  readonly hostedTools?: readonly string[]
  /** How long this endpoint caches a prompt, milliseconds; absent if its format or model says it. */
  readonly cacheMs?: number
  /** Top-level request fields that this endpoint rejects: left out even when relaying. */
  readonly refusedFields: readonly string[]
  /** How marks in the prompt are written, for models that need or take them (contract 44.2). */
  readonly cacheMarks?: 'cache_control' | 'prompt_cache_breakpoint'
  /** Whether the operator turned off adding marks (contract 44.8). */
  readonly leavesMarks?: boolean
  /** Where a key goes that leads requests with the same beginning to the same cache (contract 44.7). */
  readonly cacheKey?: 'prompt_cache_key' | 'x-grok-conv-id'
  /** Whether requests without that key do not find what others with the same beginning have stored. */
  readonly needsCacheKey?: boolean
}

/** What is decided about a provider's prompt cache for one request to one backend (contract 44). */
export interface CacheRequest extends MarkOptions {
  /** Whether marks may be added. The caller's own are always kept. */
  readonly addsMarks: boolean
  /** The value for `prompt_cache_key`, in place of the caller's; undefined for none. */
  readonly key?: string | undefined
}

/** Formats by name. */
export interface Formats {
  (id: ClientFormatId): Format
  (id: FormatId): ProviderFormat
}

export interface WriteTarget {
  readonly model: string
  readonly stream: boolean
  readonly dialect: Dialect
  /** If absent, no marks are added and the caller's key is written where it is known to be accepted. */
  readonly cache?: CacheRequest | undefined
}

export interface AnswerReader {
  /**
   * Reads one server-sent event: its data (the text after `data:`, including `[DONE]`) and its name, if any. @throws
   * UpstreamError `broken` for data that is not of this format, and for an end whose reason is not a known success;
   * `server_error` etc. for an error in any shape (contract 10.6)
   */
  readEvent(data: string, name?: string): readonly AnswerEvent[]
  /** Events known only when the stream has ended: called once, then. Absent if the last event is always complete. */
  readEnd?(): readonly AnswerEvent[]
  /** The parsed data of the last event, for relaying; undefined if it is not part of the format. @see readLarge */
  readonly lastData: JsonObject | undefined
  /** Reads the body of a whole answer. @throws UpstreamError as above */
  readWhole(body: JsonObject): readonly AnswerEvent[]
  /**
   * Reads a large whole answer in steps, without one object for all of it; absent if the format's answers are mostly
   * text, which parses fast. `lastData` is then the rest of the answer. @throws UpstreamError as `readWhole`
   */
  readLarge?(bytes: Buffer): Generator<void, readonly AnswerEvent[]>
  /**
   * The usage in an event, or in a whole answer, that `readEvent` or `readWhole` threw for: a call that fails with a
   * successful status is billed, too (contract 42.8). Undefined if there is none.
   */
  usageIn(data: JsonObject): Usage | undefined
  /** The service tier that the stream has named so far, as it did; absent if its format names none before its usage. */
  readonly serviceTier?: string | undefined
  /** Whether the terminal event was read: a stream that ends without it is broken (contract 10.5). */
  readonly finished: boolean
}

export interface AnswerContext {
  readonly conversation: Conversation
  /** The request id: `chatcmpl_…` or `resp_…` are derived from it. */
  readonly requestId: string
  /** Unix seconds. */
  readonly createdAt: number
  /** The current time in Unix seconds, for the completion time. */
  readonly nowSeconds: () => number
  /** Whether the answer is stored, so that a later request may refer to it (contract 12.1). */
  readonly isStored: boolean
  /** Whether it runs in the background, whatever the provider says. */
  readonly isBackground?: boolean
  /** The answer's `model` if it is not the requested profile: the backend's model (contract 2.31). */
  readonly servedModel?: string | undefined
  /** The stored answer that the request continues, repeated in the new answer. */
  readonly previousResponseId?: string | undefined
  /** The conversation that the answer belongs to, repeated in the answer. */
  readonly conversationId?: string | undefined
  /**
   * The `svc_router` report, if it is known before the answer begins: why a single model answers a request that a
   * fusion could have answered.
   */
  readonly report?: JsonObject | undefined
  /** Mints the part of an item id after its prefix: unique, letters and digits. */
  readonly mintId: () => string
}

/** The value of the answer's `model` (contract 2.31). */
export function shownModel({ servedModel, conversation }: AnswerContext): string {
  return servedModel ?? conversation.profile
}

export interface AnswerWriter {
  /** The stream text for these events, whole server-sent events only; empty if there is nothing to send. */
  writeEvents(events: readonly AnswerEvent[]): string
  /** A keep-alive for a silent stream; one per call (contract 10.10). */
  writeKeepAlive(): string
  /** Ends a stream successfully: terminal events and `[DONE]`. Called once, after `finish` was written. */
  writeEnd(): string
  /** Ends a failed stream so that clients notice (contract 10). */
  writeFailure(failure: StreamFailure): string
  /** Builds a whole answer from all of its events. */
  writeWhole(events: readonly AnswerEvent[]): JsonObject
}
