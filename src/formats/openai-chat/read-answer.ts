import type { AnswerEvent, FinishReason, Json, JsonObject } from '../../domain/conversation.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { answerFault } from '../answer-faults.ts'
import { isObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'
import { EventParser } from '../event-parser.ts'
import type { AnswerReader } from '../format.ts'
import { CallReader } from './call-reader.ts'
import { readUsage } from './usage.ts'

const nothing: readonly AnswerEvent[] = []

/** Reads one answer in chat completions; of several choices only the first (wire 6.2). */
export class ChatReader implements AnswerReader {
  #started = false
  /** Whether the model has said anything at all. */
  #said = false
  #finished = false
  readonly #parser = new EventParser()
  readonly #calls = new CallReader()

  get finished(): boolean {
    return this.#finished
  }

  get lastData(): JsonObject | undefined {
    return this.#parser.last
  }

  readEvent(data: string): readonly AnswerEvent[] {
    if (data === '[DONE]') return this.#readDone()
    const chunk = this.#parser.parse(data)
    const choices = chunk['choices']
    if (!isArray(choices)) {
      this.#refuse(chunk)
      return nothing
    }
    if (chunk['error'] !== undefined && chunk['error'] !== null) throw answerFault(chunk['error'])
    const events: AnswerEvent[] = []
    this.#start(chunk, events)
    const choice = firstChoice(choices)
    if (choice !== undefined && !this.#finished) {
      const delta = choice['delta']
      const before = events.length
      if (isObject(delta)) this.#readMessage(delta, choice, events)
      if (events.length > before) this.#said = true
      this.#readFinish(choice['finish_reason'], events)
    }
    this.#readUsage(chunk, events)
    return events
  }

  readWhole(body: JsonObject): readonly AnswerEvent[] {
    const choices = body['choices']
    if (!isArray(choices)) {
      this.#refuse(body)
      throw new UpstreamError('broken')
    }
    const choice = firstChoice(choices)
    const message = choice?.['message']
    if (choice === undefined || !isObject(message)) throw new UpstreamError('broken')
    const events: AnswerEvent[] = []
    this.#start(body, events)
    this.#readMessage(message, choice, events)
    // A whole answer is complete: some servers give it without a reason.
    this.#readFinish(choice['finish_reason'] || 'stop', events)
    this.#readUsage(body, events)
    return events
  }

  #readDone(): readonly AnswerEvent[] {
    if (this.#finished) return nothing
    // Some servers give no reason behind an answer, but then there is one: an end without any is none.
    if (!this.#said) throw new UpstreamError('broken')
    const events: AnswerEvent[] = []
    this.#readFinish('stop', events)
    return events
  }

  /** What has no choices is an error, or something beside the answer such as a ping. */
  #refuse(chunk: JsonObject): void {
    const { error, object, choices } = chunk
    if (error !== undefined && error !== null) throw answerFault(error)
    if (object === 'error') throw answerFault(chunk)
    if (choices !== undefined && choices !== null) throw new UpstreamError('broken')
  }

  #start(chunk: JsonObject, events: AnswerEvent[]): void {
    if (this.#started) return
    this.#started = true
    const { id, model } = chunk
    events.push({
      type: 'start',
      ...(typeof id === 'string' && id !== '' && { id }),
      ...(typeof model === 'string' && model !== '' && { model }),
    })
  }

  /** Reads a delta of a stream or the message of a whole answer: both have the same fields. */
  #readMessage(message: JsonObject, choice: JsonObject, events: AnswerEvent[]): void {
    const reasoning = message['reasoning_content'] ?? message['reasoning']
    if (typeof reasoning === 'string' && reasoning !== '') events.push({ type: 'reasoning', text: reasoning })
    const { content, refusal, annotations, tool_calls: calls } = message
    const { logprobs } = choice
    if (typeof content === 'string') readText(content, logprobs, events)
    else if (isArray(content)) readBlocks(content, events)
    if (typeof refusal === 'string' && refusal !== '') events.push({ type: 'refusal', text: refusal })
    if (isArray(annotations)) readAnnotations(annotations, events)
    if (isArray(calls)) for (const call of calls) this.#calls.read(call, events)
  }

  #readFinish(reason: Json | undefined, events: AnswerEvent[]): void {
    if (typeof reason !== 'string' || reason === '') return
    if (reason === 'error') throw new UpstreamError('server_error')
    this.#finished = true
    events.push({ type: 'finish', reason: finishReason(reason, this.#calls.count) })
  }

  #readUsage(chunk: JsonObject, events: AnswerEvent[]): void {
    const value = chunk['usage']
    if (value === undefined || value === null) return
    const usage = readUsage(value)
    if (usage !== undefined) events.push({ type: 'usage', usage })
  }
}

function firstChoice(choices: readonly Json[]): JsonObject | undefined {
  for (const choice of choices) {
    if (isObject(choice) && (choice['index'] === 0 || typeof choice['index'] !== 'number')) return choice
  }
  return undefined
}

function readText(text: string, logprobs: Json | undefined, events: AnswerEvent[]): void {
  const tokens = isObject(logprobs) ? logprobs['content'] : undefined
  if (isArray(tokens) && tokens.length > 0) events.push({ type: 'text', text, logprobs: tokens })
  else if (text !== '') events.push({ type: 'text', text })
}

/** Some providers answer in blocks of text and thinking instead of one string. */
function readBlocks(blocks: readonly Json[], events: AnswerEvent[]): void {
  for (const block of blocks) {
    if (!isObject(block)) continue
    const { type, text, thinking } = block
    if (type === 'text' && typeof text === 'string' && text !== '') events.push({ type: 'text', text })
    if (type !== 'thinking') continue
    if (typeof thinking === 'string' && thinking !== '') events.push({ type: 'reasoning', text: thinking })
    if (!isArray(thinking)) continue
    for (const piece of thinking) {
      if (isObject(piece) && typeof piece['text'] === 'string') events.push({ type: 'reasoning', text: piece['text'] })
    }
  }
}

/** A citation of the caller's form is flat, as on Responses; chat has it one level deeper. */
function readAnnotations(annotations: readonly Json[], events: AnswerEvent[]): void {
  for (const annotation of annotations) {
    if (!isObject(annotation)) continue
    const citation = annotation['url_citation']
    if (isObject(citation)) events.push({ type: 'annotation', annotation: { type: 'url_citation', ...citation } })
    else events.push({ type: 'annotation', annotation })
  }
}

/** Many servers say `stop` behind a call, or use words of their own. */
function finishReason(reason: string, calls: number): FinishReason {
  if (reason === 'length' || reason === 'max_tokens') return 'length'
  if (reason === 'content_filter') return 'content_filter'
  return calls > 0 ? 'tool_calls' : 'stop'
}
