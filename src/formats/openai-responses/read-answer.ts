import type { AnswerEvent, FinishReason, Usage } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { classifyAnswerError } from '../answer-faults.ts'
import { throwError, throwNamedError } from '../error-event.ts'
import { EventParser } from '../event-parser.ts'
import { isArray } from '../fields.ts'
import type { AnswerReader } from '../format.ts'
import { checkPositions } from '../positions.ts'
import { ItemReader } from './item-reader.ts'
import { readUsage } from './usage.ts'

const nothing: readonly AnswerEvent[] = []

/** Reads one answer in Responses. */
export class ResponsesReader implements AnswerReader {
  #started = false
  #serviceTier: string | undefined
  #finished = false
  readonly #parser = new EventParser()
  readonly #items = new ItemReader()

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
    if (this.#finished) return nothing
    throwNamedError(name, data)
    if (data === '[DONE]') return nothing
    const event = this.#parser.parse(data)
    throwError(event)
    checkPositions(event)
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
        throw classifyAnswerError(isObject(event['response']) ? event['response']['error'] : undefined)
      default:
        if (!isOfFormat(event['type'])) throw new UpstreamError('broken')
        this.#items.read(event, events)
    }
    return events
  }

  readWhole(body: JsonObject): readonly AnswerEvent[] {
    throwError(body)
    if (!isArray(body['output'])) throw new UpstreamError('broken')
    const events: AnswerEvent[] = []
    this.#readEnd(body, events)
    return events
  }

  usageIn(data: JsonObject): Usage | undefined {
    const { usage, service_tier: tier } = isObject(data['response']) ? data['response'] : data
    return readUsage(usage, tier)
  }

  #start(response: Json | undefined, events: AnswerEvent[]): void {
    if (this.#started || !isObject(response)) return
    this.#started = true
    const { id, model, service_tier: tier } = response
    if (typeof tier === 'string') this.#serviceTier = tier
    events.push({
      type: 'start',
      ...(typeof id === 'string' && id !== '' && { id }),
      ...(typeof model === 'string' && model !== '' && { model }),
    })
  }

  #readEnd(response: Json | undefined, events: AnswerEvent[]): void {
    if (!isObject(response)) throw new UpstreamError('broken')
    throwError(response)
    this.#start(response, events)
    const { output } = response
    // Some endpoints send the whole answer only here.
    if (isArray(output)) this.#items.readOutput(output, events)
    else if (output != null || !this.#items.hasAny) throw new UpstreamError('broken')
    const usage = readUsage(response['usage'], response['service_tier'])
    if (usage !== undefined) events.push({ type: 'usage', usage })
    const reason = finishReason(response, this.#items.callCount)
    this.#finished = true
    events.push({ type: 'finish', reason })
  }
}

/**
 * Event types have a namespace: `response.…`, or a vendor's own, with a colon. Other types are not part of the format,
 * except keep-alives.
 */
function isOfFormat(type: Json | undefined): boolean {
  if (type === 'keepalive' || type === 'ping') return true
  return typeof type === 'string' && /[.:]/.test(type) && type !== 'response.error'
}

/** Reasons for an incomplete answer that count as success. Every other reason is a failure (contract 11.18). */
const incompleteReasons = new Map<Json | undefined, FinishReason>([
  [undefined, 'length'],
  [null, 'length'],
  ['max_output_tokens', 'length'],
  ['max_tokens', 'length'],
  ['length', 'length'],
  ['content_filter', 'content_filter'],
])

/** @throws UpstreamError for a status or reason that is not a known success */
function finishReason(response: JsonObject, calls: number): FinishReason {
  const { status, incomplete_details: details } = response
  if (status === undefined || status === 'completed') return calls > 0 ? 'tool_calls' : 'stop'
  if (status !== 'incomplete') throw new UpstreamError('broken')
  const reason = incompleteReasons.get(isObject(details) ? details['reason'] : undefined)
  if (reason === undefined) throw new UpstreamError('server_error')
  return reason
}
