import { showsRefusal, type AnswerEvent, type Usage } from '../../domain/conversation.ts'
import { outputBytes, tokensOfBytes } from '../../domain/estimate-tokens.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import type { AnswerWriter } from '../../formats/format.ts'
import type { StreamFailure } from '../../formats/stream-failure.ts'
import type { Lane } from '../lanes/lane.ts'

/** Turns the events of a fused answer into the caller's format; there are no bytes to parse. */
export class FusedLane implements Lane {
  readonly encoding = 'utf8'
  /** Progress is not content: while there is nothing else, there is no answer (contract 6.16). */
  hasContent = false
  refused = false
  finished = false
  readonly alive = true
  readonly waiting = 0
  readonly upstreamError = undefined
  readonly faultText = undefined
  usage: Usage | undefined
  #bytes = 0
  #pendingEvents: AnswerEvent[] = []
  readonly #writer: AnswerWriter
  readonly #isStream: boolean

  constructor(writer: AnswerWriter, isStream: boolean) {
    this.#writer = writer
    this.#isStream = isStream
  }

  get estimatedTokens(): number {
    return tokensOfBytes(this.#bytes)
  }

  /**
   * Takes the next events to write, of the answer itself or of its progress; returns whether the answer has started.
   */
  take(events: readonly AnswerEvent[], isAnswer: boolean): boolean {
    for (const event of events) {
      this.#pendingEvents.push(event)
      if (event.type === 'usage') this.usage = event.usage
      else if (event.type === 'finish') this.finished = true
      if (showsRefusal(event)) this.refused = true
      this.#bytes += outputBytes(event)
      // A whole answer has content once it is complete.
      this.hasContent ||= isAnswer && this.#isStream && event.type !== 'start'
    }
    return this.hasContent
  }

  push(): string {
    return this.#isStream ? this.#write() : ''
  }

  end(): string | Buffer {
    if (!this.finished) throw new UpstreamError('broken')
    this.hasContent = true
    if (this.#isStream) return this.#write() + this.#writer.writeEnd()
    return Buffer.from(JSON.stringify(this.#writer.writeWhole(this.#pendingEvents)))
  }

  /** The progress that was not reported yet. */
  keepAlive(): string {
    return this.#write() || this.#writer.writeKeepAlive()
  }

  failure(failure: StreamFailure): string {
    return this.#writer.writeFailure(failure)
  }

  #write(): string {
    const events = this.#pendingEvents
    this.#pendingEvents = []
    return this.#writer.writeEvents(events)
  }
}
