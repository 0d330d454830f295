import { isContent, type AnswerEvent, type Json, type JsonObject } from '../../domain/conversation.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { isObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'
import { refuseError, refuseNamedError } from '../error-event.ts'
import { EventParser } from '../event-parser.ts'
import type { AnswerReader } from '../format.ts'
import { readFinishReason } from './finish-reason.ts'
import { readLogprobs } from './logprobs.ts'
import { readUsage } from './usage.ts'

/** What a prompt that Google blocks is answered with: it says so in a good answer, other providers with this status. */
const blockedStatus = 400
/** What each piece of an answer has one of. */
const answerMembers = ['candidates', 'usageMetadata', 'promptFeedback', 'responseId', 'modelVersion']

/**
 * Reads one answer of `generateContent`, of whose candidates the first counts. A stream is a row of such answers, ended by
 * a `finishReason` and by nothing else: there is no `[DONE]`.
 */
export class GeminiReader implements AnswerReader {
  #started = false
  #finished = false
  /** Whether the answer ended for a reason that is no success. */
  #failed = false
  readonly #parser = new EventParser()
  #calls = 0

  get finished(): boolean {
    return this.#finished
  }

  get lastData(): JsonObject | undefined {
    return this.#parser.last
  }

  readEvent(data: string, name?: string): readonly AnswerEvent[] {
    refuseNamedError(name, data)
    return this.#read(this.#parser.parse(data))
  }

  readWhole(body: JsonObject): readonly AnswerEvent[] {
    const events = this.#read(body)
    if (!this.#finished) throw new UpstreamError('broken')
    return events
  }

  #read(answer: JsonObject): readonly AnswerEvent[] {
    refuseError(answer)
    if (this.#failed || !answerMembers.some((member) => Object.hasOwn(answer, member)))
      throw new UpstreamError('broken')
    const { candidates, promptFeedback, usageMetadata } = answer
    const candidate = isArray(candidates) ? candidates.find(isFirst) : undefined
    if (candidate === undefined && isBlocked(promptFeedback)) {
      throw new UpstreamError('rejected_content', { status: blockedStatus })
    }
    if (candidates !== undefined && !isArray(candidates)) throw new UpstreamError('broken')
    const events: AnswerEvent[] = []
    this.#start(answer, events)
    if (isObject(candidate) && !this.#finished) this.#readCandidate(candidate, events)
    const usage = readUsage(usageMetadata)
    if (usage !== undefined) events.push({ type: 'usage', usage })
    return events
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
    const { content, finishReason, logprobsResult } = candidate
    const parts = isObject(content) ? content['parts'] : undefined
    let logprobs = readLogprobs(logprobsResult)
    if (isArray(parts)) {
      for (const part of parts) if (isObject(part)) logprobs = this.#readPart(part, logprobs, events)
    }
    if (typeof finishReason !== 'string' || finishReason === '') return
    const reason = readFinishReason(finishReason, this.#calls)
    if (reason !== undefined) {
      events.push({ type: 'finish', reason })
      this.#finished = true
    } else if (events.some(isContent)) {
      // What was said with it, such as a whole call, is told; the end that is missing then breaks the answer (decision 40).
      this.#failed = true
    } else throw new UpstreamError('server_error')
  }

  /** Code that Google ran and pictures that it made have no place in an answer: they were not asked for, and are passed over. */
  #readPart(
    part: JsonObject,
    logprobs: readonly Json[] | undefined,
    events: AnswerEvent[],
  ): readonly Json[] | undefined {
    const { text, thought, functionCall } = part
    if (isObject(functionCall)) {
      this.#readCall(functionCall, part['thoughtSignature'], events)
    } else if (typeof text === 'string' && text !== '') {
      if (thought === true) events.push({ type: 'reasoning', text })
      else {
        events.push(logprobs === undefined ? { type: 'text', text } : { type: 'text', text, logprobs })
        return undefined
      }
    }
    return logprobs
  }

  /** A call comes whole. Its signature is what Google wants back with it: it goes before it, as the end of what was thought. */
  #readCall(call: JsonObject, signature: Json | undefined, events: AnswerEvent[]): void {
    const { name, id, args } = call
    if (typeof name !== 'string' || name === '') throw new UpstreamError('broken')
    if (typeof signature === 'string' && signature !== '') {
      events.push({ type: 'reasoning_end', sealed: signature })
    }
    const index = this.#calls++
    events.push({ type: 'call', index, kind: 'function', id: typeof id === 'string' ? id : '', name })
    events.push({ type: 'call_arguments', index, text: JSON.stringify(isObject(args) ? args : {}) })
  }
}

function isFirst(candidate: Json): boolean {
  return isObject(candidate) && (candidate['index'] === 0 || typeof candidate['index'] !== 'number')
}

function isBlocked(feedback: Json | undefined): boolean {
  const reason = isObject(feedback) ? feedback['blockReason'] : undefined
  return typeof reason === 'string' && reason !== ''
}
