import type { Json, JsonObject } from './json.ts'
/**
 * The one representation of a request and of an answer that every format is translated to and from (contract 35.2). A
 * field that the client did not send is absent, never null.
 */

/** A request for one answer. */
export interface Conversation {
  /** The profile that the client named. */
  readonly profile: string
  /** Whether `stream` is true in the body; the `Accept` header has no effect (contract 2.24). */
  readonly stream: boolean
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  /** The fusion tool, if the client attached it (contract 16.1): its parameters as sent, including `type`. */
  readonly fusionTool?: JsonObject
  /** Whether `tool_choice` names that tool. */
  readonly isFusionForced?: boolean
  readonly toolChoice?: ToolChoice
  readonly parallelToolCalls?: boolean
  readonly outputFormat?: OutputFormat
  readonly sampling: Sampling
  readonly reasoning?: { readonly effort?: string; readonly summary?: string }
  /** Chat only: whether the client requested a usage chunk at the end of a stream. */
  readonly streamUsage: boolean
  /** Fields with the same name and meaning in several formats, which the service itself does not read. */
  readonly hints: Hints
}

export interface Hints {
  readonly metadata?: JsonObject
  readonly user?: string
  readonly safetyIdentifier?: string
  readonly serviceTier?: string
  readonly promptCacheKey?: string
  readonly verbosity?: string
  /** Responses only: whether the client wants the answer stored (contract 12.1). */
  readonly store?: boolean
  /** Responses only: whether the client wants encrypted reasoning, to send it back later. */
  readonly sealedReasoning?: boolean
  readonly instructions?: string
  readonly previousResponseId?: string
  /** Responses only: the conversation that the request continues (contract 13). */
  readonly conversationId?: string
  readonly truncation?: string
  /** Responses only: the maximum number of calls of tools that the client does not run, including ours. */
  readonly maxToolCalls?: number
  /** Responses only: the ids of `item_reference` items. They are in `turns` only once resolved. */
  readonly references?: readonly string[]
  /** Responses only: whether the input has `compaction` items, which are ours or a provider's. */
  readonly compactions?: boolean
  /** Responses only: whether the input has fusion items of earlier answers, which backends do not know. */
  readonly fusionEchoes?: boolean
  /** Responses only: whether the input has reasoning items that consist of an id only. */
  readonly bareReasoning?: boolean
  /** Responses only: how many of the tools, the last ones, came with later input items (`additional_tools`). */
  readonly lateTools?: number
  /**
   * Fields that exist only in the client's own format. A request with such fields is rejected if it must be translated.
   */
  readonly untranslatable?: readonly string[]
}

export interface Sampling {
  readonly temperature?: number
  readonly topP?: number
  /** Not supported by OpenAI's formats. */
  readonly topK?: number
  readonly maxOutputTokens?: number
  readonly stop?: readonly string[]
  readonly seed?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly logprobs?: boolean
  readonly topLogprobs?: number
  /** The number of answers. Default 1; only chat backends can give more. */
  readonly choices?: number
  /** The number of answers that the provider writes, if it returns only the best of them. */
  readonly candidates?: number
}

export type Turn = InputTurn | AssistantTurn | ToolTurn

export interface InputTurn {
  readonly role: 'system' | 'developer' | 'user'
  readonly parts: readonly InputPart[]
  readonly name?: string
}

/** Everything that the model said between two turns of other roles, in order. */
export interface AssistantTurn {
  readonly role: 'assistant'
  readonly parts: readonly AssistantPart[]
}

/** The result of one tool call. */
export interface ToolTurn {
  readonly role: 'tool'
  readonly callId: string
  readonly parts: readonly InputPart[]
  readonly mark?: CacheLifetime
  /** `custom` for the result of a custom tool call; `function` for all others. */
  readonly kind: 'function' | 'custom'
}

/**
 * How long a provider stores the prompt up to a part that has a cache mark (contract 44.2). The client sets `mark`
 * where it marks a part itself.
 */
export type CacheLifetime = '5m' | '1h'

export type InputPart =
  | { readonly type: 'text'; readonly text: string; readonly mark?: CacheLifetime }
  /** `url` is an http(s) URL or a data URL. */
  | { readonly type: 'image'; readonly url: string; readonly detail?: string; readonly mark?: CacheLifetime }
  /** One of `data` (a data URL or bare base64), `url`, or the id of a file at the provider. */
  | {
      readonly type: 'file'
      readonly data?: string
      readonly url?: string
      readonly id?: string
      readonly filename?: string
      readonly mark?: CacheLifetime
    }
  | { readonly type: 'audio'; readonly data: string; readonly format: string }

export type AssistantPart =
  | { readonly type: 'text'; readonly text: string; readonly mark?: CacheLifetime }
  | { readonly type: 'refusal'; readonly text: string }
  /**
   * `sealed` is encrypted reasoning: when read, with the mark of its issuer; when written, only for the backend that
   * issued it (formats/encrypted-reasoning.ts).
   */
  | { readonly type: 'reasoning'; readonly text: string; readonly sealed?: string }
  | ToolCall

export interface ToolCall {
  readonly type: 'call'
  readonly kind: 'function' | 'custom'
  readonly id: string
  readonly name: string
  /** The namespace of the tool, if it was declared in one. */
  readonly namespace?: string
  /** The arguments as JSON text, exactly as the model wrote them; for a custom call, its input. */
  readonly arguments: string
  readonly mark?: CacheLifetime
}

export type Tool =
  | {
      readonly type: 'function'
      readonly name: string
      readonly namespace?: string
      readonly description?: string
      readonly parameters?: JsonObject
      readonly strict?: boolean
      readonly mark?: CacheLifetime
    }
  | {
      readonly type: 'custom'
      readonly name: string
      readonly namespace?: string
      readonly description?: string
      /** The grammar or format, as declared. */
      readonly format?: JsonObject
    }
  /**
   * A tool that only its own provider can run (`web_search`…). Passed on unchanged, or dropped for backends that lack
   * it.
   */
  | { readonly type: 'hosted'; readonly declaration: JsonObject }

export type ToolChoice =
  | { readonly type: 'auto' | 'none' | 'required' }
  | { readonly type: 'tool'; readonly kind: 'function' | 'custom'; readonly name: string; readonly namespace?: string }
  | { readonly type: 'allowed'; readonly mode: 'auto' | 'required'; readonly names: readonly string[] }

export type OutputFormat =
  | { readonly type: 'text' | 'json_object' }
  | {
      readonly type: 'json_schema'
      readonly name: string
      readonly schema: JsonObject
      readonly description?: string
      readonly strict?: boolean
    }

/**
 * One step of an answer. The order is: `start`, deltas, exactly one `finish`; `usage` may come before or after
 * `finish`. An answer without `finish` is broken (contract 10.5).
 */
export type AnswerEvent =
  /** `id` and `model` are the backend's own. Translation replaces both. */
  | { readonly type: 'start'; readonly id?: string; readonly model?: string }
  | { readonly type: 'text'; readonly text: string; readonly logprobs?: readonly Json[] }
  | { readonly type: 'refusal'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** Ends the current reasoning part. `sealed` is its encrypted form as the issuer sent it, before a lane marks it. */
  | { readonly type: 'reasoning_end'; readonly sealed?: string }
  | { readonly type: 'annotation'; readonly annotation: JsonObject }
  /** Starts call number `index`, counted from 0. */
  | {
      readonly type: 'call'
      readonly index: number
      readonly kind: 'function' | 'custom'
      readonly id: string
      readonly name: string
      /** The namespace of the tool, if the backend named one. */
      readonly namespace?: string
    }
  | { readonly type: 'call_arguments'; readonly index: number; readonly text: string }
  /** A call that the service itself made and answered, for formats that can show it. Never from a backend. */
  | ServiceCall
  /** The service's report on how the answer was made, for the member `svc_router`; before `finish`. */
  | { readonly type: 'report'; readonly report: JsonObject }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: FinishReason }

/** `arguments` and `output` are JSON texts. If the call failed, `error` says why and `output` is absent. */
export interface ServiceCall {
  readonly type: 'service_call'
  /** `mcp_call` is an item that every client knows; `native` is an item of our own type. */
  readonly shape: 'mcp_call' | 'native'
  readonly arguments: string
  readonly output?: string
  readonly error?: string
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** Tokens of one answer, counted by the backend or estimated by us. `domain/token-price.ts` divides it for prices. */
export interface Usage {
  /** All input, whether cached or not. */
  readonly inputTokens: number
  /** All output, including reasoning. */
  readonly outputTokens: number
  /** Input that was read from a cache. */
  readonly cachedTokens: number
  readonly reasoningTokens: number
  /** Input that was written to a cache, for any lifetime. */
  readonly cacheWriteTokens?: number
  /** The part of `cacheWriteTokens` that is stored for an hour; the rest counts as stored for 5 minutes. */
  readonly cacheWrite1hTokens?: number
  readonly audioInputTokens?: number
  /** The part of `audioInputTokens` that was read from a cache. */
  readonly cachedAudioTokens?: number
  readonly audioOutputTokens?: number
  readonly imageInputTokens?: number
  readonly imageOutputTokens?: number
  /** Searches that the provider ran. */
  readonly webSearches?: number
  /** The service tier that the provider says it used, in lowercase, such as `flex`; absent for the usual one. */
  readonly serviceTier?: string
  /** Where the provider says that it processed the request, in lowercase; absent for anywhere. */
  readonly region?: string
  /** The cost that the provider states: decimal picodollars. */
  readonly statedCost?: string
  readonly source: 'counted' | 'estimated'
  /** Present if only the output is estimated. */
  readonly isInputCounted?: true
  /** The usage of each call, if several calls produced the answer. The other fields are their sum. */
  readonly parts?: readonly UsagePart[]
}

/** The usage of one of several calls that produced an answer, and how the call ended. */
export interface UsagePart extends Omit<Usage, 'parts'> {
  readonly role: string
  /** Present only if clients may see it. */
  readonly model?: string
  readonly status: string
  readonly ms: number
}

/** Whether the event is content as defined in contract 1.8: no retry is possible after it. */
export function isContent(event: AnswerEvent): boolean {
  return event.type !== 'start' && event.type !== 'usage'
}

/** Whether the event shows that the model or its provider refused to answer for safety (contract 7.29). */
export function showsRefusal(event: AnswerEvent): boolean {
  return event.type === 'refusal' || (event.type === 'finish' && event.reason === 'content_filter')
}
