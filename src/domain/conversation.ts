import type { Json, JsonObject } from './json.ts'
/**
 * The one shape of a request and of an answer that every format is translated to and from (contract 35.2).
 * A field is absent, never null, where the caller did not say.
 */

/** A request for one answer. */
export interface Conversation {
  /** The route profile that the caller named. */
  readonly profile: string
  readonly stream: boolean
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  /** Whether the caller attached `svc-router:fusion` (contract 16.1); its parameters as sent, `type` included. */
  readonly fusionTool?: JsonObject
  /** Whether `tool_choice` names that tool. */
  readonly isFusionForced?: boolean
  readonly toolChoice?: ToolChoice
  readonly parallelToolCalls?: boolean
  readonly outputFormat?: OutputFormat
  readonly sampling: Sampling
  readonly reasoning?: { readonly effort?: string; readonly summary?: string }
  /** Chat only: whether the caller asked for a usage chunk at the end of a stream. */
  readonly streamUsage: boolean
  /** What formats share by the same name and meaning and the service itself never reads. */
  readonly hints: Hints
}

export interface Hints {
  readonly metadata?: JsonObject
  readonly user?: string
  readonly safetyIdentifier?: string
  readonly serviceTier?: string
  readonly promptCacheKey?: string
  readonly verbosity?: string
  /** Responses only: whether the caller wants the answer kept (contract 12.1). */
  readonly store?: boolean
  /** Responses only: whether the caller wants reasoning in its sealed form, for sending it back. */
  readonly sealedReasoning?: boolean
  readonly instructions?: string
  readonly previousResponseId?: string
  /** Responses only: the conversation that the request continues (contract 13). */
  readonly conversationId?: string
  readonly truncation?: string
  /** Responses only: the most calls of tools that are not run by the caller, of ours among them. */
  readonly maxToolCalls?: number
  /** Responses only: the ids of `item_reference` items, which stand in `turns` only once they are resolved. */
  readonly references?: readonly string[]
  /** Responses only: whether `compaction` items stand in the input, which are ours or a provider's. */
  readonly compactions?: boolean
  /** Responses only: whether fusions of earlier answers stand in the input as items, which no backend knows. */
  readonly fusionEchoes?: boolean
  /** Responses only: whether reasoning stands in the input that is only named by its id. */
  readonly bareReasoning?: boolean
  /** Fields that were used and that only the caller's own format can say; refused where a request is translated. */
  readonly untranslatable?: readonly string[]
}

export interface Sampling {
  readonly temperature?: number
  readonly topP?: number
  /** Not known to OpenAI's formats. */
  readonly topK?: number
  readonly maxOutputTokens?: number
  readonly stop?: readonly string[]
  readonly seed?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly logprobs?: boolean
  readonly topLogprobs?: number
  /** How many answers to give; 1 unless said. Only a chat backend can give more. */
  readonly choices?: number
}

export type Turn = InputTurn | AssistantTurn | ToolTurn

export interface InputTurn {
  readonly role: 'system' | 'developer' | 'user'
  readonly parts: readonly InputPart[]
  readonly name?: string
}

/** Everything that the model said between two turns of others, in its order. */
export interface AssistantTurn {
  readonly role: 'assistant'
  readonly parts: readonly AssistantPart[]
}

/** The result of one tool call. */
export interface ToolTurn {
  readonly role: 'tool'
  readonly callId: string
  readonly parts: readonly InputPart[]
  /** `custom` answers a custom call; `function` every other. */
  readonly kind: 'function' | 'custom'
}

export type InputPart =
  | { readonly type: 'text'; readonly text: string }
  /** `url` is an http(s) or a data URL. */
  | { readonly type: 'image'; readonly url: string; readonly detail?: string }
  /** Either `data` (a data URL or bare base64), `url`, or the id of a file that the provider keeps. */
  | {
      readonly type: 'file'
      readonly data?: string
      readonly url?: string
      readonly id?: string
      readonly filename?: string
    }
  | { readonly type: 'audio'; readonly data: string; readonly format: string }

export type AssistantPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'refusal'; readonly text: string }
  /** `sealed` is a provider's encrypted reasoning: as it was read with the mark of its issuer, as it is written only what that backend issued (formats/encrypted-reasoning.ts). */
  | { readonly type: 'reasoning'; readonly text: string; readonly sealed?: string }
  | ToolCall

export interface ToolCall {
  readonly type: 'call'
  readonly kind: 'function' | 'custom'
  readonly id: string
  readonly name: string
  /** Where the tool was declared inside a namespace, that namespace's name. */
  readonly namespace?: string
  /** The JSON text of the arguments, byte for byte as the model wrote it; for a custom call its input. */
  readonly arguments: string
}

export type Tool =
  | {
      readonly type: 'function'
      readonly name: string
      readonly namespace?: string
      readonly description?: string
      readonly parameters?: JsonObject
      readonly strict?: boolean
    }
  | {
      readonly type: 'custom'
      readonly name: string
      readonly namespace?: string
      readonly description?: string
      /** The grammar or format as declared. */
      readonly format?: JsonObject
    }
  /** A tool that only its own provider can run (`web_search`…). Kept whole; dropped where it cannot be served. */
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
 * One step of an answer. The order is: `start`, then deltas, then exactly one `finish`; `usage` may come before or
 * after `finish`. An answer that has no `finish` is broken (contract 10.5).
 */
export type AnswerEvent =
  /** `id` and `model` are the backend's own; neither reaches the caller in translation. */
  | { readonly type: 'start'; readonly id?: string; readonly model?: string }
  | { readonly type: 'text'; readonly text: string; readonly logprobs?: readonly Json[] }
  | { readonly type: 'refusal'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** Ends the current piece of reasoning; `sealed` is its encrypted form, as its issuer gave it until a lane marks it. */
  | { readonly type: 'reasoning_end'; readonly sealed?: string }
  | { readonly type: 'annotation'; readonly annotation: JsonObject }
  /** Opens call number `index`, counted from 0 in the order of opening. */
  | {
      readonly type: 'call'
      readonly index: number
      readonly kind: 'function' | 'custom'
      readonly id: string
      readonly name: string
      /** Where the backend knows namespaces and named the tool's. */
      readonly namespace?: string
    }
  | { readonly type: 'call_arguments'; readonly index: number; readonly text: string }
  /** A call that the service itself has made and answered, shown where the caller's format can; no backend says it. */
  | ServiceCall
  /** What the service says of how the answer came about, for its member `svc_router`; before `finish`. */
  | { readonly type: 'report'; readonly report: JsonObject }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: FinishReason }

/** `arguments` and `output` are JSON texts; `output` is absent where `error` says why. */
export interface ServiceCall {
  readonly type: 'service_call'
  /** `mcp_call` is what every client knows, `native` an item of our own type. */
  readonly shape: 'mcp_call' | 'native'
  readonly arguments: string
  readonly output?: string
  readonly error?: string
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** Tokens of one answer. `source` says whether the backend counted them or we estimated. */
export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
  readonly reasoningTokens: number
  readonly source: 'counted' | 'estimated'
  /** Of an answer that several calls gave: each of them. Their sum is the whole. */
  readonly parts?: readonly UsagePart[]
}

/** What one of several calls behind an answer used, and how it ended. */
export interface UsagePart extends Omit<Usage, 'parts'> {
  readonly role: string
  /** Only where callers may know it. */
  readonly model?: string
  readonly status: string
  readonly ms: number
}

/** Whether the event is content in the sense of contract 1.8: after it nothing may be retried. */
export function isContent(event: AnswerEvent): boolean {
  return event.type !== 'start' && event.type !== 'usage'
}
