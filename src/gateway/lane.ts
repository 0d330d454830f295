import type { Usage } from '../domain/conversation.ts'
import type { AnswerContext, Format, ProviderFormat, StreamFailure } from '../formats/format.ts'
import type { RelayRules } from '../formats/relay.ts'
import type { Backend, HeldBytes } from './ports.ts'

/** As much of a fault's text as is kept. */
export const maxFaultCharacters = 64 * 1024

/**
 * The way of one answer from a backend's bytes to the caller's (contract 35.3). Whatever a lane returns consists of
 * whole events and is written in one piece. It throws UpstreamError for an answer that is an error or not an answer.
 */
export interface Lane {
  /** How the returned text is turned into bytes: `latin1` carries bytes that were never decoded. */
  readonly encoding: 'latin1' | 'utf8'
  /** Takes the next bytes, returns what they let be written. @throws UpstreamError */
  push(chunk: Buffer): string
  /** The backend has ended: the last text of a stream, all bytes of a whole answer. @throws UpstreamError `broken` where the answer is not complete */
  end(): string | Buffer
  /** Whether content has been read: from then on nothing may be retried (contract 7.4). */
  readonly hasContent: boolean
  /** Whether the terminal event has been read: what fails afterwards does not matter any more. */
  readonly finished: boolean
  /** Whether the last `push` brought more than comments (contract 9.9: those do not count as life). */
  readonly alive: boolean
  /** Bytes of an event whose end has not arrived; 0 between events. */
  readonly waiting: number
  /** What ended the answer in the midst of the last `push`, once its text is written. */
  readonly fault: Error | undefined
  /** The beginning of the event, or of the whole answer, that `push` or `end` could not take, as its backend sent it. */
  readonly faultText: string | undefined
  /** What the backend counted; absent where it did not. */
  readonly usage: Usage | undefined
  /** A rough count of the answer's tokens so far, for where the backend does not count. */
  readonly roughTokens: number
  /** Keeps a stream alive; undefined where this lane cannot before the backend has begun. */
  keepAlive(): string | undefined
  /** Ends a stream that broke. */
  failure(failure: StreamFailure): string
}

/** How answers travel between one format of callers and one of backends. */
export interface LaneChoice {
  readonly context: AnswerContext
  readonly client: Pick<Format, 'writeAnswer'>
  readonly backend: Backend
  readonly backendFormat: ProviderFormat
  /** The rules of the format, where both sides speak the same one. */
  readonly relay: RelayRules | undefined
  /** Whether the model was not offered our function where it could have been. @see refusingOurCalls */
  readonly refusesOurCalls?: boolean
  /** Counts the bytes of a whole answer. */
  readonly held?: HeldBytes | undefined
}
