import type { AnswerEvent, Usage } from '../../domain/conversation.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import type { AnswerContext, Format, ProviderFormat } from '../../formats/format.ts'
import type { RelayRules } from '../../formats/relay.ts'
import type { StreamFailure } from '../../formats/stream-failure.ts'
import type { Backend, HeldBytes } from '../ports.ts'

/** Maximum characters of an upstream error's text that are stored. */
export const maxFaultCharacters = 64 * 1024
/**
 * Maximum characters of the arguments of all calls of an answer together, because they are parsed at once (contract
 * 30.12).
 */
const maxArgumentCharacters = 4 * 1024 * 1024

/** Counts the arguments of one answer. */
export class ArgumentLimit {
  #left = maxArgumentCharacters

  /** @throws UpstreamError `broken` when there are too many */
  count(event: AnswerEvent): void {
    if (event.type !== 'call_arguments') return
    this.#left -= event.text.length
    if (this.#left < 0) throw new UpstreamError('broken')
  }
}

/**
 * Converts one answer from a backend's bytes to the caller's (contract 35.3). Everything that a lane returns consists
 * of whole events and is written in one piece. It throws UpstreamError for an answer that is an error or malformed.
 */
export interface Lane {
  /** How the returned text is encoded: `latin1` carries bytes that were never decoded. */
  readonly encoding: 'latin1' | 'utf8'
  /** Takes the next bytes; returns what can be written. @throws UpstreamError */
  push(chunk: Buffer): string
  /**
   * Called when the backend has ended: returns the last text of a stream, or all bytes of a whole answer.
   * @throws UpstreamError `broken` if the answer is not complete
   */
  end(): string | Buffer
  /**
   * Prepares `end` in several turns of the event loop; undefined if the answer is small enough for one. Never rejects:
   * `end` returns the result, or throws.
   */
  prepareEnd?(): Promise<void> | undefined
  /** Whether content has been read: from then on nothing may be retried, except as contract 40 says (contract 7.4). */
  readonly hasContent: boolean
  /** Whether the terminal event has been read: later failures no longer matter. */
  readonly finished: boolean
  /** Whether the last `push` contained more than comments, which do not count as activity (contract 9.9). */
  readonly alive: boolean
  /** Bytes of an incomplete event; 0 between events. */
  readonly waiting: number
  /** The error that ended the answer during the last `push`; raised after its text is written. */
  readonly upstreamError: Error | undefined
  /** The start of the event, or of the whole answer, that `push` or `end` could not process, as the backend sent it. */
  readonly faultText: string | undefined
  /** The usage that the backend reported; undefined if it reported none. */
  readonly usage: Usage | undefined
  /** The service tier that the backend has named so far, as it did; undefined if it named none. */
  readonly serviceTier?: string | undefined
  /** Whether the answer is a refusal for safety, as far as it was read (contract 7.29). */
  readonly refused: boolean
  /** A rough count of the answer's tokens so far, for a backend that reports no usage. */
  readonly estimatedTokens: number
  /** A keep-alive for the stream; undefined if this lane cannot send one before the backend has started. */
  keepAlive(): string | undefined
  /** The failure event that ends a broken stream. */
  failure(failure: StreamFailure): string
}

/** How to convert answers from a backend's format to a caller's. */
export interface LaneOptions {
  readonly context: AnswerContext
  readonly client: Pick<Format, 'writeAnswer'>
  readonly backend: Backend
  readonly backendFormat: ProviderFormat
  /** The format's relay rules, if both sides use the same format. */
  readonly relay: RelayRules | undefined
  /** Whether the model could have been offered our function but was not. @see rejectingUnofferedCalls */
  readonly refusesOurCalls?: boolean
  /** Counts the bytes of a whole answer. */
  readonly held?: HeldBytes | undefined
}
