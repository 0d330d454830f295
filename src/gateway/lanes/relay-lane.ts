import { isContent, showsRefusal, type AnswerEvent, type Conversation, type Usage } from '../../domain/conversation.ts'
import { bytesPerToken, outputBytes } from '../../domain/estimate-tokens.ts'
import { type JsonObject, isObject } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { markText } from '../../formats/encrypted-reasoning.ts'
import { failedUsage, readSse } from '../../formats/error-event.ts'
import { shownModel, type AnswerContext, type AnswerReader } from '../../formats/format.ts'
import { asBytes } from '../../formats/json-scan.ts'
import { patchData, patchEvent } from '../../formats/patch-json.ts'
import type { RelayState, RelayRules, StreamRules } from '../../formats/relay.ts'
import { maxEventBytes, SseReader } from '../../formats/sse.ts'
import type { StreamFailure } from '../../formats/stream-failure.ts'
import { TextBuffer } from '../../formats/text-buffer.ts'
import { asError } from '../../runtime/describe-bug.ts'
import { EventShapes, modelMember } from './event-shapes.ts'
import { maxFaultCharacters, type Lane } from './lane.ts'

/** `"sequence_number": 1234567`, with the spaces that some servers add. */
const longestSequenceChars = 48
const done = '[DONE]'
/** `"sequence_number":7`. Renumbered only after events of our own were inserted. */
const sequenceMember = /"sequence_number"\s*:\s*(\d+)/g

/**
 * Forwards a stream in its own format. The bytes are never decoded: they are handled as latin1 text, one character per
 * byte. Most events have a known shape and cost one comparison (@see EventShapes).
 */
export class RelayLane implements Lane {
  readonly encoding = 'latin1'
  hasContent = false
  refused = false
  alive = false
  upstreamError: Error | undefined
  faultText: string | undefined
  usage: Usage | undefined
  /** Of the events that were parsed. */
  #parsedTokens = 0
  readonly #rules: RelayRules
  readonly #stream: StreamRules
  readonly #reader: AnswerReader
  readonly #context: AnswerContext
  readonly #conversation: Conversation
  readonly #model: string
  readonly #backendCounts: boolean
  readonly #issuer: string
  readonly #state: RelayState = { sequence: -1, inserted: 0 }
  readonly #shapes: EventShapes
  readonly #sse = new SseReader()
  /** The part of an incomplete event that has arrived. */
  readonly #rest = new TextBuffer()
  #endsInFeed = false
  #endsInReturn = false
  #isDone = false
  /** The last events that were forwarded without being parsed. */
  #forwarded = ''

  /** `issuer` encrypts the reasoning in the answer (`Backend.issuer`). */
  constructor(rules: RelayRules, reader: AnswerReader, context: AnswerContext, backendCounts: boolean, issuer: string) {
    if (rules.stream === undefined) throw new Error('this format is never streamed')
    this.#rules = rules
    this.#stream = rules.stream
    this.#reader = reader
    this.#context = context
    this.#conversation = context.conversation
    this.#model = `"model":${JSON.stringify(shownModel(context))}`
    this.#shapes = new EventShapes(rules.stream.deltas, this.#model)
    this.#backendCounts = backendCounts
    this.#issuer = issuer
  }

  get serviceTier(): string | undefined {
    return this.#reader.serviceTier
  }

  get waiting(): number {
    return this.#rest.length
  }

  get finished(): boolean {
    if (!this.#reader.finished) return false
    const { finishedChoices } = this.#state
    return this.#isDone || finishedChoices === undefined || finishedChoices.size >= this.#choices
  }

  get estimatedTokens(): number {
    return Math.ceil(this.#parsedTokens + this.#shapes.tokens)
  }

  push(chunk: Buffer): string {
    const text = this.#withLineFeeds(chunk.toString('latin1'))
    const found = text.lastIndexOf('\n\n')
    const isSplit = found < 0 && this.#endsInFeed && text.startsWith('\n')
    const end = isSplit ? 1 : found < 0 ? 0 : found + 2
    if (text !== '') this.#endsInFeed = text.endsWith('\n')
    if (end === 0) {
      // An event is not inspected until it is complete, so one that arrives in many reads is joined once.
      this.#keepRest(text)
      this.alive = false
      return ''
    }
    const events = this.#rest.take() + text.slice(0, end)
    this.#keepRest(text.slice(end))
    return this.#readEvents(events)
  }

  end(): string {
    // After a complete answer, `push` may still complete the event that has begun: it may have the usage.
    const rest = this.finished ? '' : this.#rest.take()
    // Some endpoints omit the empty line after their last event.
    const last = rest === '' ? '' : this.#readEvents(`${rest}${rest.endsWith('\n') ? '\n' : '\n\n'}`)
    if (!this.finished) throw this.upstreamError ?? new UpstreamError('broken')
    return last + this.#stream.ending
  }

  keepAlive(): string | undefined {
    this.#readSequence()
    const text = this.#stream.keepAlive(this.#state)
    return text === undefined ? undefined : this.#withOurModel(text)
  }

  failure(failure: StreamFailure): string {
    this.#readSequence()
    return this.#withOurModel(this.#stream.failure(failure, this.#state))
  }

  /** Finishes events of our own: what they repeat of the provider's response still names its model. */
  #withOurModel(text: string): string {
    return asBytes(text).replace(modelMember, this.#model)
  }

  /** Reads the number of the last event that was forwarded unparsed: events of our own continue from it. */
  #readSequence(): void {
    if (!this.#stream.numbered) return
    const at = this.#forwarded.lastIndexOf('"sequence_number"')
    const number = at < 0 ? undefined : /\d+/.exec(this.#forwarded.slice(at, at + longestSequenceChars))?.[0]
    this.#forwarded = ''
    if (number !== undefined) this.#state.sequence = Number(number) + this.#state.inserted
  }

  /** Converts line ends to line feeds. A carriage return at the very end may be the first half of one. */
  #withLineFeeds(arrived: string): string {
    const text = this.#endsInReturn && arrived.startsWith('\n') ? arrived.slice(1) : arrived
    if (!text.includes('\r')) {
      if (arrived !== '') this.#endsInReturn = false
      return text
    }
    this.#endsInReturn = text.endsWith('\r')
    return text.replace(/\r\n?/g, '\n')
  }

  #keepRest(rest: string): void {
    this.#rest.add(rest)
    if (this.#rest.length > maxEventBytes) throw new UpstreamError('broken')
  }

  /** Parses event by event, except events of a known shape, which are forwarded together. */
  #readEvents(events: string): string {
    let out = ''
    let from = 0
    this.alive = false
    const hadContent = this.hasContent
    const write = (known: string): void => {
      this.alive = true
      this.#forwarded = known
      out += this.#renumber(known)
    }
    while (from < events.length) {
      if (this.#maySkip && (from = this.#shapes.pass(events, from, write)) === events.length) break
      const end = events.indexOf('\n\n', from)
      // A third line feed after an event ends no other one.
      if (end < 0) break
      const { lastData } = this.#reader
      try {
        out += this.#readOne(events.slice(from, end))
      } catch (error) {
        // After a complete answer a fault no longer matters.
        if (!this.finished) {
          this.usage = failedUsage(this.#reader, lastData) ?? this.usage
          this.faultText = Buffer.from(events.slice(from, end).slice(0, maxFaultCharacters), 'latin1').toString('utf8')
          if (!hadContent) throw error
          // The events before the fault are still forwarded (contract 10.9).
          this.upstreamError = asError(error)
          return out
        }
      }
      from = end + 2
    }
    return out
  }

  /** Whether events may be forwarded unparsed: not before content, after the end, or if any of them may have usage. */
  get #maySkip(): boolean {
    return this.hasContent && this.#backendCounts && !this.#reader.finished
  }

  #readOne(block: string): string {
    const event = this.#sse.push(`${block}\n\n`)[0]
    if (event === undefined) return ''
    this.#readSequence()
    this.alive = true
    const wasFinished = this.finished
    const read = readSse(this.#reader, event)
    this.#note(read)
    if (event.data === done) this.#isDone = true
    const parsed = this.#reader.lastData
    if (event.data === done || this.#isDone || parsed === undefined) return ''
    // A complete answer does not change, whatever its backend sends afterwards.
    if (wasFinished && this.#stream.followsEnd?.(parsed) !== true) return ''
    const shown = this.#patch(block, parsed)
    this.#stream.observe?.(shown.data, this.#state)
    if (this.#stream.isUnrequested?.(parsed, this.#conversation) === true) return ''
    const { encryptedReasoning } = this.#rules
    const renamed = this.#renumber(shown.block.replace(modelMember, this.#model))
    const marked =
      encryptedReasoning === undefined ? renamed : markText(encryptedReasoning, renamed, shown.data, this.#issuer)
    if (this.#maySkip && shown.block === block && marked === renamed && read.every(isDelta)) this.#shapes.learn(block)
    return `${marked}\n\n`
  }

  /** Replaces what the provider says about the response as a whole where it differs here, and adds our report. */
  #patch(block: string, data: JsonObject): { readonly block: string; readonly data: JsonObject } {
    const response = data['response']
    let changes = isObject(response) ? this.#rules.responsePatches?.(response, this.#context) : undefined
    const { report } = this.#context
    if (report !== undefined && this.#stream.carriesReport(data, this.#conversation))
      changes = { ...changes, svc_router: JSON.stringify(report) }
    if (changes === undefined) return { block, data }
    return { block: patchEvent(block, changes), data: patchData(data, changes) }
  }

  #note(events: readonly AnswerEvent[]): void {
    for (const event of events) {
      if (event.type === 'usage') this.#noteUsage(event.usage)
      else if (isContent(event)) this.hasContent = true
      if (showsRefusal(event)) this.refused = true
      const bytes = outputBytes(event)
      // Only the first of several answers is read.
      if (bytes > 0) this.#parsedTokens += Math.max(1, bytes / bytesPerToken) * this.#choices
    }
  }

  #noteUsage(usage: Usage): void {
    this.usage = usage
    // Its reader must know whether content follows counts so far.
    if (usage.source === 'estimated') this.#shapes.forget()
  }

  get #choices(): number {
    return this.#conversation.sampling.choices ?? 1
  }

  #renumber(events: string): string {
    const { inserted } = this.#state
    if (inserted === 0) return events
    return events.replace(sequenceMember, (_, number: string) => `"sequence_number":${Number(number) + inserted}`)
  }
}

/** Whether an event only continues content: the next one like it needs no inspection. */
function isDelta({ type }: AnswerEvent): boolean {
  return type === 'text' || type === 'reasoning' || type === 'refusal' || type === 'call_arguments'
}
