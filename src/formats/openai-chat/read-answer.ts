import type { AnswerEvent, Usage } from '../../domain/conversation.ts'
import { unfinishedUsage } from '../../domain/estimate-tokens.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { classifyAnswerError, errorObjects, errorText } from '../answer-faults.ts'
import { isForeign, throwError, throwNamedError } from '../error-event.ts'
import { EventParser } from '../event-parser.ts'
import { isArray } from '../fields.ts'
import type { AnswerReader } from '../format.ts'
import { checkCallPosition, checkPosition } from '../positions.ts'
import { explainsError } from '../reported-error.ts'
import { CallReader } from './call-reader.ts'
import { readFinishReason } from './finish-reason.ts'
import { readUsage } from './usage.ts'

/** The differences between the kinds of completions. */
export interface CompletionKind {
  /** The value of `object` in a chunk. */
  readonly chunk: string
  /** A choice's content, as a chat message or its delta. */
  messageOf(choice: JsonObject): Json | undefined
}

const chat: CompletionKind = {
  chunk: 'chat.completion.chunk',
  messageOf: ({ delta, message }) => delta ?? message,
}

/** Reads one answer in completions, chat by default; only the first of several choices is read. */
export class ChatReader implements AnswerReader {
  readonly #kind: CompletionKind
  #started = false
  /** Whether any content has arrived. */
  #hasContent = false
  #serviceTier: string | undefined
  #finished = false
  /** By position: whether an answer has ended. */
  readonly #ends = new Map<number, boolean>()
  /** What was counted so far, unless content followed: it is final if the answer ends with that. */
  #soFar: Usage | undefined
  readonly #parser = new EventParser()
  readonly #calls = new CallReader()

  constructor(kind: CompletionKind = chat) {
    this.#kind = kind
  }

  get finished(): boolean {
    return this.#finished
  }

  get serviceTier(): string | undefined {
    return this.#serviceTier
  }

  get lastData(): JsonObject | undefined {
    return this.#parser.last
  }

  readEvent(data: string, name?: string): readonly AnswerEvent[] {
    throwNamedError(name, data)
    if (data === '[DONE]') return this.#readDone()
    const chunk = this.#parser.parse(data)
    throwError(chunk)
    if (chunk['choices'] == null && !this.#isBeside(chunk) && isForeign(name, chunk)) return this.#parser.skip()
    const choices = this.#choicesOf(chunk)
    const events: AnswerEvent[] = []
    if (choices !== undefined) {
      this.#start(chunk, events)
      const choice = this.#check(choices)
      if (choice !== undefined && !this.#finished) {
        const delta = this.#kind.messageOf(choice)
        const before = events.length
        if (isObject(delta)) this.#readMessage(delta, choice, events)
        if (events.length > before) {
          this.#hasContent = true
          this.#soFar = undefined
        }
        this.#readFinish(choice['finish_reason'], events)
      }
      // Content of another answer, which is not read.
      if (choice === undefined && choices.length > 0) this.#soFar = undefined
    }
    this.#readUsage(chunk, events)
    return events
  }

  readWhole(body: JsonObject): readonly AnswerEvent[] {
    throwError(body)
    const { choices } = body
    if (!isArray(choices)) throw new UpstreamError('broken')
    const choice = this.#check(choices)
    const message = choice && this.#kind.messageOf(choice)
    if (choice === undefined || !isObject(message) || !isAnswer(message, choice)) throw new UpstreamError('broken')
    const events: AnswerEvent[] = []
    this.#start(body, events)
    this.#readMessage(message, choice, events)
    // A whole answer is complete: some servers omit the reason.
    this.#readFinish(isReason(choice['finish_reason']) ? choice['finish_reason'] : 'stop', events)
    const usage = this.usageIn(body)
    if (usage !== undefined) events.push({ type: 'usage', usage })
    return events
  }

  usageIn({ usage, service_tier: tier = this.#serviceTier }: JsonObject): Usage | undefined {
    return readUsage(usage, tier)
  }

  #readDone(): readonly AnswerEvent[] {
    const events: AnswerEvent[] = []
    if (!this.#finished) {
      // Some servers omit the reason, but only after content; an empty answer without a reason is broken (contract
      // 10.15).
      if (!this.#hasContent) throw new UpstreamError('broken')
      this.#readFinish('stop', events)
    }
    this.#confirmUsage(events)
    return events
  }

  /**
   * A chunk without choices must have the other members of the format, which `{"detail": …}` does not. @throws
   * UpstreamError `broken`, or the error that it explains
   */
  #choicesOf(chunk: JsonObject): readonly Json[] | undefined {
    const { choices } = chunk
    if (isArray(choices)) return choices
    if (choices != null || !this.#isBeside(chunk)) throw new UpstreamError('broken')
    if (explainsError(chunk)) throw classifyAnswerError(chunk)
    return undefined
  }

  #isBeside({ object, usage }: JsonObject): boolean {
    return object === this.#kind.chunk || isObject(usage)
  }

  /** The first choice. No choice may have failed, including those that are only relayed. @throws UpstreamError */
  #check(choices: readonly Json[]): JsonObject | undefined {
    for (const choice of choices) {
      if (!isObject(choice)) throw new UpstreamError('broken')
      throwError(choice)
      checkPosition(choice['index'])
      const reason = errorText(choice['finish_reason'])
      if (isReason(reason) && readFinishReason(reason, 0) === undefined) throw new UpstreamError('server_error')
      this.#noteEnd(choice['index'], isReason(reason))
      const message = this.#kind.messageOf(choice)
      if (isObject(message)) checkMessage(message)
      else if (message != null) throw new UpstreamError('broken')
      // No client reads the positions in a whole message; SGLang gives every call -1.
      const { delta } = choice
      if (isObject(delta)) for (const { index } of errorObjects(delta['tool_calls'])) checkCallPosition(index)
    }
    return firstChoice(choices)
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
    if (!isReason(reason)) return
    const known = readFinishReason(reason, this.#calls.count)
    if (known === undefined) throw new UpstreamError('server_error')
    this.#finished = true
    events.push({ type: 'finish', reason: known })
  }

  #readUsage(chunk: JsonObject, events: AnswerEvent[]): void {
    const { choices, usage: value, service_tier: tier } = chunk
    if (typeof tier === 'string') this.#serviceTier = tier
    const usage = readUsage(value, this.#serviceTier)
    if (usage === undefined) {
      if (this.#haveAllEnded) this.#confirmUsage(events)
      return
    }
    // Some providers count with every chunk, or say at the beginning what they counted until then.
    const isSoFar = isArray(choices) && choices.length > 0 && !this.#haveAllEnded
    this.#soFar = isSoFar ? usage : undefined
    events.push({ type: 'usage', usage: isSoFar ? unfinishedUsage(usage) : usage })
  }

  /** The answer has ended after its last counts. */
  #confirmUsage(events: AnswerEvent[]): void {
    if (this.#soFar !== undefined) events.push({ type: 'usage', usage: this.#soFar })
    this.#soFar = undefined
  }

  #noteEnd(index: Json | undefined, hasEnded: boolean): void {
    const position = typeof index === 'number' ? index : 0
    this.#ends.set(position, hasEnded || this.#ends.get(position) === true)
  }

  get #haveAllEnded(): boolean {
    return this.#finished && this.#ends.values().every((hasEnded) => hasEnded)
  }
}

function firstChoice(choices: readonly Json[]): JsonObject | undefined {
  for (const choice of choices) {
    if (isObject(choice) && (choice['index'] === 0 || typeof choice['index'] !== 'number')) return choice
  }
  return undefined
}

/** Members of which a whole message has at least one, even if it is null or empty. */
const messageMembers = [
  'content',
  'tool_calls',
  'function_call',
  'refusal',
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'audio',
  'images',
]

/** Whether a whole message has content, or its finish reason explains that it has none: Azure omits what it filters. */
function isAnswer(message: JsonObject, { finish_reason: reason }: JsonObject): boolean {
  if (messageMembers.some((member) => Object.hasOwn(message, member))) return true
  const known = isReason(reason) ? readFinishReason(reason, 0) : undefined
  return known === 'content_filter' || known === 'length'
}

/** @throws UpstreamError for an error, `broken` for content in an unknown form */
function checkMessage(message: JsonObject): void {
  throwError(message)
  const { content, refusal, tool_calls: calls } = message
  if (isArray(content)) errorObjects(content)
  else errorText(content)
  errorText(refusal)
  errorObjects(calls)
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
    if (type === 'text') {
      const plain = errorText(text)
      if (plain !== '') events.push({ type: 'text', text: plain })
    }
    if (type !== 'thinking') continue
    if (typeof thinking === 'string' && thinking !== '') events.push({ type: 'reasoning', text: thinking })
    if (!isArray(thinking)) continue
    for (const piece of thinking) {
      if (isObject(piece) && typeof piece['text'] === 'string') events.push({ type: 'reasoning', text: piece['text'] })
    }
  }
}

/** The caller's format has flat citations, like Responses; chat nests them one level deeper. */
function readAnnotations(annotations: readonly Json[], events: AnswerEvent[]): void {
  for (const annotation of annotations) {
    if (!isObject(annotation)) continue
    const citation = annotation['url_citation']
    if (isObject(citation)) events.push({ type: 'annotation', annotation: { type: 'url_citation', ...citation } })
    else events.push({ type: 'annotation', annotation })
  }
}

/** Some servers write a missing reason as an empty text or as the word `null`. */
function isReason(reason: Json | undefined): reason is string {
  return typeof reason === 'string' && reason !== '' && reason !== 'null'
}
