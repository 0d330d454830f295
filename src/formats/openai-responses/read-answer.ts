import type { AnswerEvent, FinishReason, Json, JsonObject } from '../../domain/conversation.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { answerFault } from '../answer-faults.ts'
import { isObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'
import { EventParser } from '../event-parser.ts'
import type { AnswerReader } from '../format.ts'
import { ItemReader } from './item-reader.ts'
import { readUsage } from './usage.ts'

const nothing: readonly AnswerEvent[] = []

/** Reads one answer in Responses (wire 1.3, 6.2). */
export class ResponsesReader implements AnswerReader {
  #started = false
  #finished = false
  readonly #parser = new EventParser()
  readonly #items = new ItemReader()

  get finished(): boolean {
    return this.#finished
  }

  get lastData(): JsonObject | undefined {
    return this.#parser.last
  }

  readEvent(data: string): readonly AnswerEvent[] {
    if (data === '[DONE]' || this.#finished) return nothing
    const event = this.#parser.parse(data)
    const events: AnswerEvent[] = []
    switch (event['type']) {
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        this.#start(event['response'], events)
        break
      case 'response.completed':
      case 'response.incomplete':
        this.#readEnd(event['response'], events)
        break
      case 'response.failed':
      case 'response.cancelled':
        throw answerFault(isObject(event['response']) ? event['response']['error'] : undefined)
      case 'error':
        throw answerFault(isObject(event['error']) ? event['error'] : event)
      case undefined:
        // Not an event of this format: what a proxy says when it gives up.
        throw event['error'] === undefined ? new UpstreamError('broken') : answerFault(event['error'])
      default:
        this.#items.read(event, events)
    }
    return events
  }

  readWhole(body: JsonObject): readonly AnswerEvent[] {
    if (isObject(body['error']) || typeof body['error'] === 'string') throw answerFault(body['error'])
    if (!isArray(body['output'])) throw new UpstreamError('broken')
    const { status } = body
    if (status !== undefined && status !== 'completed' && status !== 'incomplete') throw new UpstreamError('broken')
    const events: AnswerEvent[] = []
    this.#readEnd(body, events)
    return events
  }

  #start(response: Json | undefined, events: AnswerEvent[]): void {
    if (this.#started || !isObject(response)) return
    this.#started = true
    const { id, model } = response
    events.push({
      type: 'start',
      ...(typeof id === 'string' && id !== '' && { id }),
      ...(typeof model === 'string' && model !== '' && { model }),
    })
  }

  #readEnd(response: Json | undefined, events: AnswerEvent[]): void {
    if (!isObject(response)) throw new UpstreamError('broken')
    this.#start(response, events)
    const { output } = response
    // Some endpoints tell the whole answer only here.
    if (isArray(output)) this.#items.readOutput(output, events)
    const usage = readUsage(response['usage'])
    if (usage !== undefined) events.push({ type: 'usage', usage })
    this.#finished = true
    events.push({ type: 'finish', reason: finishReason(response, this.#items.callCount) })
  }
}

function finishReason(response: JsonObject, calls: number): FinishReason {
  if (response['status'] !== 'incomplete') return calls > 0 ? 'tool_calls' : 'stop'
  const details = response['incomplete_details']
  return isObject(details) && details['reason'] === 'content_filter' ? 'content_filter' : 'length'
}
