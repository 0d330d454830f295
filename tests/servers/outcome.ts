/** What came of one request, in no convention's words: what is compared. */
export type Outcome = Answer | Failure

export interface Answer {
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly arguments: unknown }[]
  readonly end: 'stop' | 'length' | 'tools'
  /** What it says was counted. */
  readonly tokens: { readonly input: number | undefined; readonly output: number | undefined }
}

export interface Failure {
  /** 0 where a stream broke off. */
  readonly status: number
  readonly code: string
  /** The sentence that was given as the reason; absent where there was none. Not compared: svc-router has its own. */
  readonly message?: string
}

export const isFailure = (outcome: Outcome): outcome is Failure => 'code' in outcome

/** What a case asks, in no convention's words. */
export interface Question {
  readonly prompt: string
  readonly maxTokens: number
  readonly hasTool?: boolean
  readonly hasSchema?: boolean
  readonly hasImage?: boolean
  /** Asks for much reasoning, which the model does not have. */
  readonly hasEffort?: boolean
  /** Where the answer is to end, before that text. Responses has no such field. */
  readonly stop?: string
}

/** Who is asked: a server or svc-router. */
export interface Place {
  /** With `/v1`. */
  readonly baseUrl: string
  readonly key: string
  readonly model: string
}

export interface Asking {
  readonly streamed: boolean
  readonly signal?: AbortSignal | undefined
  /** Is called with the first piece of a streamed answer. */
  readonly onPiece?: () => void
}

/** A call's arguments as the object that they stand for; text where they are none. */
export function readArguments(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

/** One of the three ways in which a question is asked and its answer read, by the vendor's own SDK. */
export interface Convention {
  readonly name: 'chat' | 'responses' | 'messages'
  /** @throws BrokenOff or an error of the SDK */
  ask(place: Place, question: Question, asking: Asking): Promise<Answer>
}

/** A stream that ended without saying that it is whole. */
export class BrokenOff extends Error {}

export function unknownEnd(end: string): never {
  throw new Error(`an answer ended in an unknown way: ${end}`)
}
