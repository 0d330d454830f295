import { asError } from '../domain/bugs.ts'
import { isContent, type AnswerEvent, type Conversation, type JsonObject, type Usage } from '../domain/conversation.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { isObject } from '../domain/json.ts'
import type { AnswerContext, AnswerReader, StreamFailure } from '../formats/format.ts'
import { asBytes } from '../formats/json-scan.ts'
import { Earliest } from '../formats/earliest.ts'
import { sealText } from '../formats/sealed.ts'
import type { RelayMemory, RelayRules, StreamRules } from '../formats/relay.ts'
import { dataOfLines, restateEvent } from '../formats/restate.ts'
import { maxEventBytes } from '../formats/sse.ts'
import type { Lane } from './lane.ts'

/** A streamed token takes about this many characters with all that a format puts around it. */
const relayedCharsPerToken = 220
/** `"sequence_number": 1234567` with the spaces that some put in. */
const longestSequenceChars = 48
const done = '[DONE]'
/** `"model":"…"` of any provider, wherever the format has it: the caller reads the profile instead (contract 2.3). */
const modelMember = /"model"\s*:\s*"[^"\\]*"/g
/** `"sequence_number":7`; renumbered only after events of our own were put between. */
const sequenceMember = /"sequence_number"\s*:\s*(\d+)/g

/**
 * Passes a stream on in its own format. The bytes are never decoded: they travel as latin1 text, in which every byte is
 * one character, so that the common case costs one search and one replacement for all events of a read together.
 */
export class RelayLane implements Lane {
  readonly encoding = 'latin1'
  hasContent = false
  alive = false
  fault: Error | undefined
  usage: Usage | undefined
  #outputChars = 0
  readonly #rules: RelayRules
  readonly #stream: StreamRules
  readonly #notable: Earliest
  readonly #reader: AnswerReader
  readonly #context: AnswerContext
  readonly #conversation: Conversation
  readonly #model: string
  readonly #backendCounts: boolean
  readonly #issuer: string
  readonly #memory: RelayMemory = { sequence: -1, inserted: 0 }
  #rest = ''
  #hasCarriageReturns = false
  #isDone = false
  /** The events that were last passed on without being read. */
  #passedOn = ''

  /** `issuer` is who seals what is sealed in the answer (`Backend.issuer`). */
  constructor(rules: RelayRules, reader: AnswerReader, context: AnswerContext, backendCounts: boolean, issuer: string) {
    if (rules.stream === undefined) throw new Error('this format is never streamed')
    this.#rules = rules
    this.#stream = rules.stream
    this.#notable = new Earliest(rules.stream.notable)
    this.#reader = reader
    this.#context = context
    this.#conversation = context.conversation
    this.#model = `"model":${JSON.stringify(context.conversation.profile)}`
    this.#backendCounts = backendCounts
    this.#issuer = issuer
  }

  get finished(): boolean {
    if (!this.#reader.finished) return false
    const { finishedChoices } = this.#memory
    return (
      this.#isDone ||
      finishedChoices === undefined ||
      finishedChoices.size >= (this.#conversation.sampling.choices ?? 1)
    )
  }

  get roughTokens(): number {
    return Math.ceil(this.#outputChars / relayedCharsPerToken)
  }

  push(chunk: Buffer): string {
    const arrived = chunk.toString('latin1')
    if (this.#isInsideEvent(arrived)) {
      // Nothing looks into it until its event is complete: a long one that comes in many reads is put together once.
      this.#keepRest(this.#rest + arrived)
      this.alive = false
      return ''
    }
    const text = this.#join(arrived)
    const end = text.lastIndexOf('\n\n')
    if (end < 0) {
      this.#keepRest(text)
      this.alive = false
      return ''
    }
    const events = text.slice(0, end + 2)
    this.#keepRest(text.slice(end + 2))
    this.#outputChars += events.length
    return this.#readEvents(events)
  }

  end(): string {
    // Some endpoints leave out the empty line behind their last event.
    const rest = this.#rest.trimEnd()
    const last = this.finished || rest === '' ? '' : this.#readEvents(`${rest}\n\n`)
    this.#rest = ''
    if (!this.finished) throw new UpstreamError('broken')
    return last + this.#stream.ending
  }

  keepAlive(): string | undefined {
    this.#readSequence()
    const text = this.#stream.keepAlive(this.#memory)
    return text === undefined ? undefined : this.#ours(text)
  }

  failure(failure: StreamFailure): string {
    this.#readSequence()
    return this.#ours(this.#stream.failure(failure, this.#memory))
  }

  /** Events of our own: what they repeat of the provider's response names its model still. */
  #ours(text: string): string {
    return asBytes(text).replace(modelMember, this.#model)
  }

  /** Reads the number of the last event that was passed on unread: events of our own go on from there. */
  #readSequence(): void {
    if (!this.#stream.numbered) return
    const at = this.#passedOn.lastIndexOf('"sequence_number"')
    const number = at < 0 ? undefined : /\d+/.exec(this.#passedOn.slice(at, at + longestSequenceChars))?.[0]
    this.#passedOn = ''
    if (number !== undefined) this.#memory.sequence = Number(number) + this.#memory.inserted
  }

  #join(text: string): string {
    const joined = this.#rest === '' ? text : this.#rest + text
    if (!this.#hasCarriageReturns && !joined.includes('\r')) return joined
    this.#hasCarriageReturns = true
    // A return at the very end may be half of a line end that the next read completes.
    const held = joined.endsWith('\r')
    const lines = (held ? joined.slice(0, -1) : joined).replace(/\r\n?/g, '\n')
    return held ? `${lines}\r` : lines
  }

  /** Whether what arrived has no end of a line, so that it ends no event. */
  #isInsideEvent(arrived: string): boolean {
    return !this.#hasCarriageReturns && this.#rest !== '' && !arrived.includes('\n') && !arrived.includes('\r')
  }

  #keepRest(rest: string): void {
    if (rest.length > maxEventBytes) throw new UpstreamError('broken')
    this.#rest = rest
  }

  /** Reads event by event before content and where something notable stands; passes all others on together. */
  #readEvents(events: string): string {
    let out = ''
    let from = 0
    this.alive = false
    this.#notable.reset()
    const hadContent = this.hasContent
    while (from < events.length) {
      const passable = this.#passableUntil(events, from)
      if (passable > from) {
        this.#passedOn = events.slice(from, passable)
        out += this.#rename(this.#passedOn)
        this.alive = true
        from = passable
        continue
      }
      const end = events.indexOf('\n\n', from)
      try {
        out += this.#readOne(events.slice(from, end))
      } catch (error) {
        if (!hadContent && !this.finished) throw error
        // What was said before the fault is still passed on; after a complete answer it does not matter any more.
        if (!this.finished) this.fault = asError(error)
        return out
      }
      from = end + 2
    }
    return out
  }

  /** The end of the events that can go on unread from `from`; `from` itself where the next one must be read. */
  #passableUntil(events: string, from: number): number {
    if (!this.hasContent || !this.#backendCounts || events.charCodeAt(from) === colon) return from
    const found = this.#notable.find(events, from)
    if (found < 0) return events.length
    const boundary = events.lastIndexOf('\n\n', found)
    return boundary < from ? from : boundary + 2
  }

  #readOne(block: string): string {
    const data = dataOf(block)
    if (data === undefined) return ''
    this.#readSequence()
    this.alive = true
    const text = Buffer.from(data, 'latin1').toString('utf8')
    const wasFinished = this.finished
    const before = this.#reader.lastData
    this.#note(this.#reader.readEvent(text))
    if (text === done) {
      this.#isDone = true
      return ''
    }
    const last = this.#reader.lastData
    // Behind the end of an answer its reader reads no more.
    const parsed = last === undefined || last === before ? (JSON.parse(text) as JsonObject) : last
    // A complete answer stays one, whatever its backend says of itself afterwards.
    if (wasFinished && (parsed['error'] != null || parsed['type'] === 'error')) return ''
    const shown = this.#restate(block, parsed)
    this.#stream.observe?.(shown.data, this.#memory)
    if (this.#stream.isUnasked?.(parsed, this.#conversation) === true) return ''
    const { sealing } = this.#rules
    const renamed = this.#rename(shown.block)
    return `${sealing === undefined ? renamed : sealText(sealing, renamed, shown.data, this.#issuer)}\n\n`
  }

  /** What the provider says of the response as a whole, where it is not so here, and what we say of it. */
  #restate(block: string, data: JsonObject): { readonly block: string; readonly data: JsonObject } {
    const response = data['response']
    let changes = isObject(response) ? this.#rules.restated?.(response, this.#context) : undefined
    const { report } = this.#context
    if (report !== undefined && this.#stream.tellsReport(data, this.#conversation))
      changes = { ...changes, svc_router: JSON.stringify(report) }
    return changes === undefined ? { block, data } : restateEvent(block, changes)
  }

  #note(events: readonly AnswerEvent[]): void {
    for (const event of events) {
      if (event.type === 'usage') this.usage = event.usage
      else if (isContent(event)) this.hasContent = true
    }
  }

  #rename(events: string): string {
    const renamed = events.replace(modelMember, this.#model)
    const { inserted } = this.#memory
    if (inserted === 0) return renamed
    return renamed.replace(sequenceMember, (_, number: string) => `"sequence_number":${Number(number) + inserted}`)
  }
}

const colon = 0x3a

/** The data of one event's lines, or undefined where it has none (a comment, an empty line). */
function dataOf(block: string): string | undefined {
  const lines = block.split('\n').filter((line) => line.startsWith('data:'))
  return lines.length === 0 ? undefined : dataOfLines(lines)
}
