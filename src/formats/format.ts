import type { AnswerEvent, Conversation, JsonObject } from '../domain/conversation.ts'
import type { ClientFormatId, FormatId } from '../domain/format-id.ts'
import type { ClientManners } from './manners.ts'

export type { ClientFormatId, FormatId } from '../domain/format-id.ts'

/** A wire format that providers speak: the two pure functions that face them (contract 35.2). */
export interface ProviderFormat {
  readonly id: FormatId
  /** Whether what a model seals is for that model alone; absent where all models of a provider read each other's. */
  readonly sealsByModel?: boolean
  /** Below a provider's base URL, with a query where the format wants one: `/chat/completions`. */
  upstreamPath(model: string, stream: boolean): string
  /** The body for a provider. @throws ServiceError `unsupported_parameter` where this format cannot say it */
  writeRequest(conversation: Conversation, target: WriteTarget): JsonObject
  /** Reads one answer of a provider, streamed or whole. One reader for each answer. */
  readAnswer(): AnswerReader
}

/**
 * A wire format that clients and providers speak: four pure functions over one `Conversation` and one union of
 * `AnswerEvent`s (contract 35.2). Write-then-read gives back what was written, for all that both sides can say.
 */
export interface Format extends ProviderFormat {
  readonly id: ClientFormatId
  /** Where clients ask, below our base URL: `/chat/completions`. */
  readonly path: string
  /** What its clients expect of HTTP besides. */
  readonly manners: ClientManners
  /** What its clients call a field that a refusal names by another format's word: `input`, `messages`, `stop`. */
  readonly fieldNames?: Readonly<Record<string, string>>
  /** A client's body. Lenient: what is not understood is kept or passed over. @throws ServiceError `invalid_request` with `param` */
  readRequest(body: JsonObject): Conversation
  /** Writes one answer to a client, streamed or whole. One writer for each answer. */
  writeAnswer(context: AnswerContext): AnswerWriter
}

/** Differences between endpoints of one format, from the provider's row in the registry. */
export interface Dialect {
  /** How the answer's length is limited on chat. */
  readonly maxTokensField: 'max_completion_tokens' | 'max_tokens'
  /** Whether `developer` messages are understood; where not they are sent as `system`. */
  readonly developerRole: boolean
  /** Whether `stream_options.include_usage` is understood. */
  readonly streamUsage: boolean
  /** Whether the model wants its earlier reasoning back (`reasoning_content` on chat); where absent it is left out. */
  readonly replaysReasoning?: boolean
  /**
   * On responses, for an endpoint that knows functions and nothing else of OpenAI's client tools: the types of hosted tools
   * that it runs. Custom tools and those of a namespace are sent as functions there, other hosted ones are left out.
   * Absent where all types of tools are taken.
   */
  readonly hostedTools?: readonly string[]
  /** Top-level request fields that this endpoint refuses: left out even in the relay lane. */
  readonly refusedFields: readonly string[]
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
}

export interface AnswerReader {
  /**
   * One server-sent event: its data (the text behind `data:`, `[DONE]` included) and its name, where it has one.
   * @throws UpstreamError `broken` for what is not this format, and for an end whose reason is no known success;
   * `server_error` etc. for an error in any shape (contract 10.6)
   */
  readEvent(data: string, name?: string): readonly AnswerEvent[]
  /** What is known only when the stream has ended: called once, then. Absent where the last event tells all. */
  readEnd?(): readonly AnswerEvent[]
  /** The data of the last event that was JSON, parsed, to pass it on; undefined where it is not of the format. */
  readonly lastData: JsonObject | undefined
  /** A whole answer's body. @throws UpstreamError as above */
  readWhole(body: JsonObject): readonly AnswerEvent[]
  /** Whether the terminal event has been read: without it a stream that ends is broken (contract 10.5). */
  readonly finished: boolean
}

export interface AnswerContext {
  readonly conversation: Conversation
  /** The id of the answer: `chatcmpl_…` or `resp_…` are made from it. */
  readonly requestId: string
  /** Unix seconds. */
  readonly createdAt: number
  /** Unix seconds now, for when the answer is complete. */
  readonly nowSeconds: () => number
  /** Whether the answer is kept, so that a later request may refer to it (contract 12.1). */
  readonly isStored: boolean
  /** The name that the answer's `model` has where it is not the requested profile: the backend's model (contract 2.31). */
  readonly servedModel?: string | undefined
  /** The stored answer that the request went on from, which its answer repeats. */
  readonly previousResponseId?: string | undefined
  /** The conversation that the answer belongs to, which it names. */
  readonly conversationId?: string | undefined
  /**
   * What is said under `svc_router` of how the answer comes about, where that is known before it begins: why one model
   * alone answers what several could have had a part in.
   */
  readonly report?: JsonObject | undefined
  /** Mints what follows an item's prefix: unique, letters and digits. */
  readonly mintId: () => string
}

/** What the answer's `model` says (contract 2.31). */
export function shownModel({ servedModel, conversation }: AnswerContext): string {
  return servedModel ?? conversation.profile
}

export interface AnswerWriter {
  /** The bytes of a stream for these events, whole server-sent events only; empty when nothing is to be said. */
  writeEvents(events: readonly AnswerEvent[]): string
  /** What keeps a silent stream alive, once for each call (contract 10.10). */
  writeKeepAlive(): string
  /** Ends a stream well: terminal events and `[DONE]`. Called once, after `finish` was written. */
  writeEnd(): string
  /** Ends a stream that broke, in the form that clients notice (contract 10). */
  writeFailure(failure: StreamFailure): string
  /** A whole answer from all of its events. */
  writeWhole(events: readonly AnswerEvent[]): JsonObject
}

/** What a caller reads when a stream breaks; `message` and `code` come from the error catalogue. */
export interface StreamFailure {
  readonly code: string
  readonly type: string
  readonly message: string
  readonly param: string | null
  /** Who is at fault, as in `error.source` (contract 4.1). */
  readonly source: string
  readonly retryable: boolean
  readonly requestId: string
}
