import { showsRefusal, type AnswerEvent, type Usage } from '../../domain/conversation.ts'
import { completeUsage, outputBytes, tokensOfBytes } from '../../domain/estimate-tokens.ts'
import type { JsonObject } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { parseAnswer, parseSimple } from '../../formats/answer-faults.ts'
import { mayBeEncrypted, markEvent, markText } from '../../formats/encrypted-reasoning.ts'
import { failedUsage } from '../../formats/error-event.ts'
import { shownModel, type AnswerReader } from '../../formats/format.ts'
import { areTooComplex, isTooComplex } from '../../formats/json-limits.ts'
import { patchJson, patchJsonInSteps } from '../../formats/patch-json.ts'
import type { RelayRules } from '../../formats/relay.ts'
import { renameModel } from '../../formats/rename-model.ts'
import type { StreamFailure } from '../../formats/stream-failure.ts'
import { GatheredBytes } from '../../runtime/gathered-bytes.ts'
import { runAtOnce, runInTurns } from '../../runtime/yield-to-event-loop.ts'
import { ArgumentLimit, maxFaultCharacters, type Lane, type LaneOptions } from './lane.ts'

/** Maximum size of a whole answer; a translated one is also serialized again (contract 30.12). */
const maxAnswerBytes = 32 * 1024 * 1024
const maxTranslatedBytes = 16 * 1024 * 1024
/** Larger answers are read in several turns of the event loop (contract 29.14). */
const largeBytes = 1024 * 1024

/** Collects a whole answer, checks that it is complete, and returns it in the client's format (contract 10.14). */
export class WholeLane implements Lane {
  readonly encoding = 'latin1'
  hasContent = false
  refused = false
  finished = false
  alive = true
  readonly waiting = 0
  readonly upstreamError = undefined
  faultText: string | undefined
  usage: Usage | undefined
  #outputBytes = 0
  readonly #arguments = new ArgumentLimit()
  readonly #choice: LaneOptions
  readonly #gathered = new GatheredBytes()
  #prepared: { readonly answer: string | Buffer } | { readonly error: unknown } | undefined

  constructor(choice: LaneOptions) {
    this.#choice = choice
  }

  get estimatedTokens(): number {
    // Only the first of several answers is read.
    const { choices = 1 } = this.#choice.context.conversation.sampling
    return tokensOfBytes(this.#outputBytes) * choices
  }

  push(chunk: Buffer): string {
    const most = this.#choice.relay === undefined ? maxTranslatedBytes : maxAnswerBytes
    if (this.#gathered.length + chunk.length > most) throw new UpstreamError('broken')
    this.#choice.held?.grow(chunk.length)
    this.#gathered.addCopy(chunk)
    return ''
  }

  prepareEnd(): Promise<void> | undefined {
    if (this.#gathered.length <= largeBytes) return undefined
    return runInTurns(this.#readLarge()).then(
      (answer) => {
        this.#prepared = { answer }
      },
      (error: unknown) => {
        this.#prepared = { error }
      },
    )
  }

  /** Bytes, or text in latin1. */
  end(): string | Buffer {
    if (this.#prepared !== undefined) {
      if ('error' in this.#prepared) throw this.#prepared.error
      return this.#prepared.answer
    }
    return this.#gathered.length > largeBytes ? runAtOnce(this.#readLarge()) : this.#readSmall()
  }

  keepAlive(): undefined {
    return undefined
  }

  failure(_failure: StreamFailure): string {
    return ''
  }

  /** Without a generator: its steps would cost as much as parsing a small answer. */
  #readSmall(): string | Buffer {
    const { backendFormat, context, relay } = this.#choice
    const bytes = withoutMark(this.#gathered.take())
    try {
      const text = bytes.toString('utf8')
      const body = parseAnswer(text)
      const events = this.#read(backendFormat.readAnswer(), body)
      if (relay === undefined) return Buffer.from(this.#translate(events))
      const changes = this.#changesOf(relay, body)
      const name = JSON.stringify(shownModel(context))
      const renamed = changes === undefined ? renameModel(bytes, text, name) : undefined
      return this.#mark(relay, renamed ?? patchJson(bytes, { model: name, ...changes }), body)
    } catch (error) {
      throw this.#faulty(bytes, error)
    }
  }

  /** One step per pass over all bytes. */
  *#readLarge(): Generator<void, string | Buffer> {
    const { backendFormat, context, relay } = this.#choice
    const bytes = withoutMark(this.#gathered.take())
    yield
    try {
      const reader = backendFormat.readAnswer()
      const large = reader.readLarge?.(bytes)
      const body = large === undefined ? yield* parseInSteps(bytes) : {}
      yield
      const events = large === undefined ? this.#read(reader, body) : yield* this.#readParts(reader, large)
      if (relay === undefined) {
        yield
        const written = this.#translate(events)
        yield
        return Buffer.from(written)
      }
      const changes = { model: JSON.stringify(shownModel(context)), ...this.#changesOf(relay, body) }
      const shown = yield* patchJsonInSteps(bytes, changes)
      yield
      return this.#mark(relay, shown, body)
    } catch (error) {
      throw this.#faulty(bytes, error)
    }
  }

  /** @throws UpstreamError for an answer that failed; its usage is kept (contract 42.8) */
  #read(reader: AnswerReader, body: JsonObject): readonly AnswerEvent[] {
    try {
      const events = reader.readWhole(body)
      this.#noteAll(events)
      return events
    } catch (error) {
      this.usage = reader.usageIn(body) ?? this.usage
      throw error
    }
  }

  /** The same for a large answer. */
  *#readParts(
    reader: AnswerReader,
    parts: Generator<void, readonly AnswerEvent[]>,
  ): Generator<void, readonly AnswerEvent[]> {
    try {
      const events = yield* parts
      this.#noteAll(events)
      return events
    } catch (error) {
      this.usage = failedUsage(reader, undefined) ?? this.usage
      throw error
    }
  }

  /** What changes in a relayed answer besides its model. */
  #changesOf(relay: RelayRules, body: JsonObject): Readonly<Record<string, string>> | undefined {
    const { context } = this.#choice
    const patches = relay.responsePatches?.(body, context)
    return context.report === undefined ? patches : { ...patches, svc_router: JSON.stringify(context.report) }
  }

  /** Marks encrypted reasoning with its issuer. */
  #mark({ encryptedReasoning }: RelayRules, shown: string | Buffer, body: JsonObject): string | Buffer {
    if (encryptedReasoning === undefined || !mayBeEncrypted(encryptedReasoning, shown)) return shown
    const text = typeof shown === 'string' ? shown : shown.toString('latin1')
    return markText(encryptedReasoning, text, body, this.#choice.backend.issuer)
  }

  /** The answer in the client's format, as JSON. */
  #translate(events: readonly AnswerEvent[]): string {
    const { client, context, backend } = this.#choice
    const marked = events.map((event) => markEvent(event, backend.issuer))
    if (context.report !== undefined) marked.push({ type: 'report', report: context.report })
    const usage = completeUsage(this.usage, context.conversation, this.estimatedTokens)
    if (usage !== this.usage) marked.push({ type: 'usage', usage })
    this.usage = usage
    return JSON.stringify(client.writeAnswer(context).writeWhole(marked))
  }

  /** Stores the start of an answer that could not be read; returns the error. */
  #faulty(bytes: Buffer, error: unknown): unknown {
    this.faultText = bytes.toString('utf8', 0, maxFaultCharacters)
    return error
  }

  /** @throws UpstreamError `broken` if the answer is not complete */
  #noteAll(events: Iterable<AnswerEvent>): void {
    // Clients parse them, and some formats write them as objects.
    const calls: string[] = []
    for (const event of events) {
      this.#note(event)
      if (event.type === 'call_arguments') calls.push(event.text)
    }
    if (areTooComplex(calls)) throw new UpstreamError('broken')
    if (!this.finished) throw new UpstreamError('broken')
    this.hasContent = true
  }

  #note(event: AnswerEvent): void {
    if (event.type === 'usage') this.usage = event.usage
    if (event.type === 'finish') this.finished = true
    if (showsRefusal(event)) this.refused = true
    this.#outputBytes += outputBytes(event)
    this.#arguments.count(event)
  }
}

/** Some servers send a UTF-8 byte order mark before their JSON, which parsers may ignore (RFC 8259, 8.1). */
function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
}

function* parseInSteps(bytes: Buffer): Generator<void, JsonObject> {
  const text = bytes.toString('utf8')
  yield
  if (isTooComplex(text)) throw new UpstreamError('broken')
  yield
  return parseSimple(text)
}
