/** The outcome of one request, in a form that is the same for all conventions, for comparison. */
export type Outcome = Answer | Failure

export interface Answer {
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly arguments: unknown }[]
  readonly end: 'stop' | 'length' | 'tools'
  /** The token counts in the answer. */
  readonly tokens: { readonly input: number | undefined; readonly output: number | undefined }
}

export interface Failure {
  /** The HTTP status; 0 if a stream was incomplete or the connection failed. */
  readonly status: number
  readonly code: string
  /** The error message, if any. Not compared, because svc-router has its own messages. */
  readonly message?: string
}

export const isFailure = (outcome: Outcome): outcome is Failure => 'code' in outcome

/** The request of a case, in a form that is the same for all conventions. */
export interface Question {
  readonly prompt: string
  readonly maxTokens: number
  readonly hasTool?: boolean
  readonly hasSchema?: boolean
  readonly hasImage?: boolean
  /** Requests high reasoning effort, which the model does not support. */
  readonly hasEffort?: boolean
  /** The stop sequence. Responses has no such field. */
  readonly stop?: string
}

/** The server or svc-router. */
export interface Endpoint {
  /** With `/v1`. */
  readonly baseUrl: string
  readonly key: string
  readonly model: string
}

export interface AskOptions {
  readonly streamed: boolean
  readonly signal?: AbortSignal | undefined
  /** Called for every piece of a streamed answer. */
  readonly onPiece?: () => void
}

/** Parses the arguments of a tool call. Returns the text if it is not valid JSON. */
export function readArguments(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

/** One of three request formats, sent and read by the SDK of its vendor. */
export interface Convention {
  readonly name: 'chat' | 'responses' | 'messages'
  /** @throws IncompleteAnswer or an error of the SDK */
  ask(endpoint: Endpoint, question: Question, options: AskOptions): Promise<Answer>
}

/** An answer ended without a terminal event or a finish reason. */
export class IncompleteAnswer extends Error {}

export function unknownEnd(end: string): never {
  throw new Error(`an answer ended in an unknown way: ${end}`)
}
