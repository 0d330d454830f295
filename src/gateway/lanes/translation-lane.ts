import { isContent, showsRefusal, type AnswerEvent, type Conversation, type Usage } from '../../domain/conversation.ts'
import { completeUsage, outputBytes, tokensOfBytes } from '../../domain/estimate-tokens.ts'
import type { JsonObject } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { markEvent } from '../../formats/encrypted-reasoning.ts'
import { failedUsage, readSse } from '../../formats/error-event.ts'
import type { AnswerReader, AnswerWriter } from '../../formats/format.ts'
import { SseReader, type SseEvent } from '../../formats/sse.ts'
import type { StreamFailure } from '../../formats/stream-failure.ts'
import { asError } from '../../runtime/describe-bug.ts'
import { ArgumentLimit, maxFaultCharacters, type Lane } from './lane.ts'

/** Translates a stream of one format into a stream of another, event by event (contract 11.3). */
export class TranslationLane implements Lane {
  readonly encoding = 'utf8'
  hasContent = false
  refused = false
  alive = false
  upstreamError: Error | undefined
  faultText: string | undefined
  usage: Usage | undefined
  #outputBytes = 0
  readonly #arguments = new ArgumentLimit()
  /** A fault after the apparent end. It counts if content follows, because then that was not the end. */
  #deferredError: Error | undefined
  readonly #sse = new SseReader()
  readonly #reader: AnswerReader
  readonly writer: AnswerWriter
  readonly #issuer: string
  readonly #conversation: Conversation
  readonly #report: JsonObject | undefined

  /**
   * `issuer` encrypts the reasoning in the answer (`Backend.issuer`); `conversation` is what is answered, `report` how
   * (`AnswerContext.report`).
   */
  constructor(
    reader: AnswerReader,
    writer: AnswerWriter,
    issuer: string,
    conversation: Conversation,
    report?: JsonObject,
  ) {
    this.#report = report
    this.#reader = reader
    this.writer = writer
    this.#issuer = issuer
    this.#conversation = conversation
  }

  get serviceTier(): string | undefined {
    return this.#reader.serviceTier
  }

  get waiting(): number {
    return this.#sse.waiting
  }

  get finished(): boolean {
    return this.#reader.finished
  }

  get estimatedTokens(): number {
    return tokensOfBytes(this.#outputBytes)
  }

  push(chunk: Buffer): string {
    const read = this.#sse.push(chunk)
    this.alive = read.length > 0
    return this.#translate(read)
  }

  end(): string {
    // Some endpoints omit the empty line after their last event.
    const last = this.finished ? '' : this.#translate(this.#sse.end())
    const ending = this.upstreamError === undefined ? this.#write(this.#marked(this.#reader.readEnd?.() ?? [])) : ''
    if (!this.finished) throw this.upstreamError ?? new UpstreamError('broken')
    return last + ending + this.#estimate() + this.writer.writeEnd()
  }

  keepAlive(): string {
    return this.writer.writeKeepAlive()
  }

  failure(failure: StreamFailure): string {
    return this.writer.writeFailure(failure)
  }

  /** Clients measure their conversations by it: an estimate if the backend did not count, never 0 (contract 10.13). */
  #estimate(): string {
    const usage = completeUsage(this.usage, this.#conversation, this.estimatedTokens)
    if (usage === this.usage) return ''
    this.usage = usage
    return this.writer.writeEvents([{ type: 'usage', usage }])
  }

  #translate(read: readonly SseEvent[]): string {
    const hadContent = this.hasContent
    const all: AnswerEvent[] = []
    for (const arrived of read) {
      const { lastData } = this.#reader
      try {
        const events = readSse(this.#reader, arrived)
        for (const event of events) this.#arguments.count(event)
        if (this.#deferredError !== undefined && events.some(isContent)) throw this.#deferredError
        all.push(...this.#marked(events))
      } catch (error) {
        if (!this.finished) {
          this.faultText = Buffer.from(arrived.data.slice(0, maxFaultCharacters)).toString()
          this.usage = failedUsage(this.#reader, lastData) ?? this.usage
        }
        // Nothing of this was written yet, so another backend can continue with the same writer.
        if (!hadContent && !this.finished) throw error
        if (this.finished && error !== this.#deferredError) {
          this.#deferredError = asError(error)
          continue
        }
        this.upstreamError = asError(error)
        break
      }
    }
    return this.#write(all)
  }

  #marked(events: readonly AnswerEvent[]): AnswerEvent[] {
    const marked: AnswerEvent[] = []
    for (const event of events) {
      if (event.type === 'finish' && this.#report !== undefined) marked.push({ type: 'report', report: this.#report })
      marked.push(markEvent(event, this.#issuer))
    }
    return marked
  }

  #write(events: readonly AnswerEvent[]): string {
    for (const event of events) this.#note(event)
    return events.length === 0 ? '' : this.writer.writeEvents(events)
  }

  #note(event: AnswerEvent): void {
    if (event.type === 'usage') this.usage = event.usage
    else if (isContent(event)) this.hasContent = true
    if (showsRefusal(event)) this.refused = true
    this.#outputBytes += outputBytes(event)
  }
}
