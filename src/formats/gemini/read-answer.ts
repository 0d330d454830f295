import { isContent, type AnswerEvent, type Usage } from '../../domain/conversation.ts'
import { outputBytes } from '../../domain/estimate-tokens.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { errorObjects, errorText } from '../answer-faults.ts'
import { isForeign, throwError, throwNamedError } from '../error-event.ts'
import { EventParser } from '../event-parser.ts'
import type { AnswerReader } from '../format.ts'
import { checkPosition } from '../positions.ts'
import { readFinishReason } from './finish-reason.ts'
import { readLogprobs } from './logprobs.ts'
import { readUsage } from './usage.ts'

/**
 * The status of a prompt that Google blocks: Google reports it in a successful answer, other providers with this
 * status.
 */
const blockedStatus = 400
/** Every piece of an answer has at least one of these. */
const answerMembers = ['candidates', 'usageMetadata', 'promptFeedback', 'responseId', 'modelVersion']

/**
 * Reads one answer of `generateContent`; only the first candidate counts. A stream is a series of such answers. It ends
 * with a `finishReason`; there is no `[DONE]`.
 */
export class GeminiReader implements AnswerReader {
  #started = false
  /** The last `finishReason`. Some servers send one in every chunk, so it ends the answer only when the stream ends. */
  #finishReason: string | undefined
  /**
   * Whether content followed a reason. Then no reason proves that the answer is complete; only the end of the stream
   * does.
   */
  #continued = false
  #ended = false
  /** Whether the answer ended for a reason that is not a success. */
  #failed = false
  readonly #parser = new EventParser()
  #calls = 0
  /** Of the answer, without thoughts. */
  #bytes = 0
  /** The last `usageMetadata`, unless content followed: every piece of a stream has the counts so far. */
  #counts: Json | undefined
  #areCountsFinal = false

  get finished(): boolean {
    return this.#ended || (this.#finishReason !== undefined && !this.#continued)
  }

  get lastData(): JsonObject | undefined {
    return this.#parser.last
  }

  readEvent(data: string, name?: string): readonly AnswerEvent[] {
    throwNamedError(name, data)
    const answer = this.#parser.parse(data)
    if (!isAnswer(answer) && isForeign(name, answer)) return this.#parser.skip()
    return this.#read(answer)
  }

  readEnd(): readonly AnswerEvent[] {
    const reason = this.#finishReason && readFinishReason(this.#finishReason, this.#calls)
    if (this.#ended || reason === undefined || reason === '') return []
    this.#ended = true
    return [...(this.#areCountsFinal ? [] : this.#readUsage(true)), { type: 'finish', reason }]
  }

  readWhole(body: JsonObject): readonly AnswerEvent[] {
    const events = this.#read(body)
    const end = this.readEnd()
    if (end.length === 0) throw new UpstreamError('broken')
    return [...events, ...end]
  }

  usageIn({ usageMetadata }: JsonObject): Usage | undefined {
    return readUsage(usageMetadata, this.#bytes)
  }

  #read(answer: JsonObject): readonly AnswerEvent[] {
    throwError(answer)
    if (this.#failed || !isAnswer(answer)) throw new UpstreamError('broken')
    const { candidates, promptFeedback, usageMetadata } = answer
    const all = errorObjects(candidates)
    for (const { index } of all) checkPosition(index)
    const candidate = all.find(isFirst)
    if (candidate === undefined && isBlocked(promptFeedback)) {
      throw new UpstreamError('rejected_content', { status: blockedStatus, rejection: { rule: 'content_filter' } })
    }
    const events: AnswerEvent[] = []
    this.#start(answer, events)
    if (candidate !== undefined) this.#readCandidate(candidate, events)
    for (const event of events) if (event.type !== 'reasoning') this.#bytes += outputBytes(event)
    const hasEnded = this.finished || this.#failed
    const isFinal = hasEnded ? all.every((one) => one === candidate || one['finishReason'] != null) : all.length === 0
    if (usageMetadata != null) this.#counts = usageMetadata
    else if (events.some(isContent)) this.#counts = undefined
    return usageMetadata != null || (isFinal && hasEnded) ? [...events, ...this.#readUsage(isFinal)] : events
  }

  #readUsage(isFinal: boolean): readonly AnswerEvent[] {
    this.#areCountsFinal = isFinal
    const usage = readUsage(this.#counts, this.#bytes, isFinal)
    return usage === undefined ? [] : [{ type: 'usage', usage }]
  }

  #start(answer: JsonObject, events: AnswerEvent[]): void {
    if (this.#started) return
    this.#started = true
    const { responseId: id, modelVersion: model } = answer
    events.push({
      type: 'start',
      ...(typeof id === 'string' && id !== '' && { id }),
      ...(typeof model === 'string' && model !== '' && { model }),
    })
  }

  #readCandidate(candidate: JsonObject, events: AnswerEvent[]): void {
    const { content, logprobsResult } = candidate
    const finishReason = errorText(candidate['finishReason'])
    if (content != null && !isObject(content)) throw new UpstreamError('broken')
    let logprobs = readLogprobs(logprobsResult)
    const before = events.length
    for (const part of errorObjects(content?.['parts'])) logprobs = this.#readPart(part, logprobs, events)
    if (this.#finishReason !== undefined && events.length > before) this.#continued = true
    if (finishReason === '') return
    if (readFinishReason(finishReason, this.#calls) !== undefined) this.#finishReason = finishReason
    else if (this.#finishReason !== undefined && !this.#continued) {
      // After the end of the answer, only usage counts.
    } else if (events.some(isContent)) {
      // Content of the same piece, such as a whole call, is passed on; the missing end then breaks the answer (decision
      // 40).
      this.#failed = true
      this.#finishReason = undefined
    } else throw new UpstreamError('server_error')
  }

  /** Skips code that Google ran and images that it generated: the request did not ask for them. */
  #readPart(
    part: JsonObject,
    logprobs: readonly Json[] | undefined,
    events: AnswerEvent[],
  ): readonly Json[] | undefined {
    const { text, thought, functionCall } = part
    if (isObject(functionCall)) {
      this.#readCall(functionCall, part['thoughtSignature'], events)
      return logprobs
    }
    if (functionCall != null) throw new UpstreamError('broken')
    const plain = errorText(text)
    if (plain === '') return logprobs
    if (thought === true) {
      events.push({ type: 'reasoning', text: plain })
      return logprobs
    }
    events.push(logprobs === undefined ? { type: 'text', text: plain } : { type: 'text', text: plain, logprobs })
    return undefined
  }

  /**
   * A call arrives whole. Google wants its signature back with it, so the signature precedes it as the end of the
   * reasoning.
   */
  #readCall(call: JsonObject, signature: Json | undefined, events: AnswerEvent[]): void {
    const { name, id, args } = call
    if (typeof name !== 'string' || name === '' || (args != null && !isObject(args))) throw new UpstreamError('broken')
    if (typeof signature === 'string' && signature !== '') {
      events.push({ type: 'reasoning_end', sealed: signature })
    }
    const index = this.#calls++
    events.push({ type: 'call', index, kind: 'function', id: typeof id === 'string' ? id : '', name })
    events.push({ type: 'call_arguments', index, text: JSON.stringify(args ?? {}) })
  }
}

function isAnswer(answer: JsonObject): boolean {
  return answerMembers.some((member) => Object.hasOwn(answer, member))
}

function isFirst(candidate: JsonObject): boolean {
  return candidate['index'] === 0 || typeof candidate['index'] !== 'number'
}

function isBlocked(feedback: Json | undefined): boolean {
  const reason = isObject(feedback) ? feedback['blockReason'] : undefined
  return typeof reason === 'string' && reason !== ''
}
