import type { AnswerEvent, Usage } from '../domain/conversation.ts'
import { UpstreamError } from '../domain/upstream.ts'
import type { AnswerWriter, StreamFailure } from '../formats/format.ts'
import { charsPerToken } from './estimate-tokens.ts'
import type { Lane } from './lane.ts'

/** The way of a fused answer from its events to the caller: there are no bytes to be read. */
export class FusedLane implements Lane {
  readonly encoding = 'utf8'
  /** Progress is no content: as long as there is nothing else, nothing was answered. */
  hasContent = false
  finished = false
  readonly alive = true
  readonly waiting = 0
  readonly fault = undefined
  readonly faultText = undefined
  usage: Usage | undefined
  #characters = 0
  #unwritten: AnswerEvent[] = []
  readonly #writer: AnswerWriter
  readonly #isStream: boolean

  constructor(writer: AnswerWriter, isStream: boolean) {
    this.#writer = writer
    this.#isStream = isStream
  }

  get roughTokens(): number {
    return Math.ceil(this.#characters / charsPerToken)
  }

  /** Takes what is to be written next, of the answer itself or of how far it is; gives whether the answer has begun. */
  take(events: readonly AnswerEvent[], isAnswer: boolean): boolean {
    for (const event of events) {
      this.#unwritten.push(event)
      if (event.type === 'usage') this.usage = event.usage
      else if (event.type === 'finish') this.finished = true
      if ('text' in event) this.#characters += event.text.length
      // A whole answer has content when it is complete.
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
    return Buffer.from(JSON.stringify(this.#writer.writeWhole(this.#unwritten)))
  }

  /** How far it is, where that was not said yet. */
  keepAlive(): string {
    return this.#write() || this.#writer.writeKeepAlive()
  }

  failure(failure: StreamFailure): string {
    return this.#writer.writeFailure(failure)
  }

  #write(): string {
    const events = this.#unwritten
    this.#unwritten = []
    return this.#writer.writeEvents(events)
  }
}
