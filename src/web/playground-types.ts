/**
 * What the playground page and its scripts exchange. The scripts are checked against these types by
 * `tsconfig.browser.json`.
 */

/** In `data-playground`. The only secret is the CSRF token, which every form of the session contains. */
export interface PlaygroundSettings {
  readonly csrf: string
  readonly baseUrl: string
  /** The environment variable that code samples read the key from. */
  readonly keyVariable: string
  readonly fusionId: string
  readonly fusionToolType: string
  readonly isPremium: boolean
  readonly premiumProfiles: readonly string[]
}

export interface PlaygroundUsage {
  readonly inputTokens: number
  readonly outputTokens: number
}

export interface PlaygroundAttempt {
  readonly backend: string
  readonly outcome: string
  readonly status?: number | undefined
  readonly ms: number
}

export interface PlaygroundFusion {
  readonly preset?: string | undefined
  readonly mode?: string | undefined
  readonly costUsd?: number | undefined
  readonly dropOuts: readonly { readonly member: string; readonly why: string }[]
  readonly calls: readonly {
    readonly role: string
    readonly member: string
    readonly status: string
    readonly ms: number
    readonly usage?: PlaygroundUsage | undefined
    readonly costUsd?: number | undefined
  }[]
}

/** The JSON of `GET /playground/trail/{id}`: the record of one request, with the account's names for backends. */
export interface PlaygroundTrail {
  readonly isOver: boolean
  readonly errorCode?: string | undefined
  /** Requests charged to the month. */
  readonly charged: number
  readonly firstContentMs?: number | undefined
  readonly totalMs?: number | undefined
  readonly usage?: PlaygroundUsage | undefined
  readonly attempts: readonly PlaygroundAttempt[]
  readonly fusions: readonly PlaygroundFusion[]
}

export interface ToolCall {
  readonly id: string
  readonly type: 'function' | 'custom'
  readonly function?: { name: string; arguments?: string }
  readonly custom?: { name: string; input?: string }
}

/** A piece of a tool call in a stream, or a whole call. */
export interface ToolCallPiece extends Partial<ToolCall> {
  readonly index?: number
}

type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } }

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: string | null | readonly ContentPart[]
  readonly tool_calls?: readonly ToolCall[]
  readonly tool_call_id?: string
}

/** The body of a chat completions request. */
export interface ChatRequest {
  readonly model: string
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly unknown[]
  readonly temperature?: number
  readonly max_completion_tokens?: number
  readonly stream?: true
  readonly stream_options?: { readonly include_usage: true }
}

/** The `message` of a whole answer, or the `delta` of a streamed one. */
export interface ChatContent {
  readonly content?: string | null
  readonly reasoning_content?: string | null
  readonly reasoning?: string | null
  readonly refusal?: string | null
  readonly tool_calls?: readonly ToolCallPiece[]
}

/** A chat completion, or one event of a streamed one. */
export interface ChatAnswer {
  readonly error?: Failure
  readonly choices?: readonly { readonly message?: ChatContent; readonly delta?: ChatContent }[]
  readonly usage?: ChatUsage | null
  readonly svc_router?: { readonly fusion?: FusionReport }
}

export interface ChatUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
}

export interface FusionAnalysis {
  readonly consensus: readonly string[]
  readonly contradictions: readonly {
    readonly topic: string
    readonly stances: readonly { readonly model: string; readonly stance: string }[]
    readonly resolved_for: readonly string[]
  }[]
  readonly unique_insights: readonly { readonly model: string; readonly insight: string }[]
  readonly partial_coverage: readonly { readonly models: readonly string[]; readonly point: string }[]
  readonly blind_spots: readonly string[]
}

/** `svc_router.fusion` of an answer. */
export interface FusionReport {
  readonly ran?: boolean
  readonly reason?: string
  readonly failure_reason?: string
  readonly panel?: readonly { readonly status: string }[]
  readonly judge?: { readonly status: string }
  readonly mode?: string
  readonly verdict?: string
  readonly disagreements?: number
  readonly degraded?: readonly string[]
  readonly analysis?: FusionAnalysis
}

/** The error that an answer ended with. */
export interface Failure {
  readonly message?: string
  readonly code?: string
  readonly request_id?: string
  /** The user pressed Stop. */
  readonly isStopped?: boolean
}

export interface AttachedImage {
  readonly name: string
  readonly bytes: number
  /** A data URL. */
  readonly url: string
}

/** One turn of the conversation: the message to send (`said`) and what else to show. */
export interface Turn {
  readonly said: ChatMessage
  readonly text?: string
  readonly image?: AttachedImage | undefined
  readonly thoughts?: string
  /** How the answer ended early. */
  readonly broken?: string | undefined
}
