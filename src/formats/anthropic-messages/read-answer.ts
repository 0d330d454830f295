import type { AnswerEvent, Usage } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { errorText } from '../answer-faults.ts'
import { throwError, throwNamedError } from '../error-event.ts'
import { EventParser } from '../event-parser.ts'
import { isArray } from '../fields.ts'
import type { AnswerReader } from '../format.ts'
import { checkPosition } from '../positions.ts'
import { namesFault } from '../reported-error.ts'
import { BlockReader } from './block-reader.ts'
import { classifyMessagesError } from './faults.ts'
import { readStopReason } from './finish-reason.ts'
import { UsageReader } from './usage.ts'

const nothing: readonly AnswerEvent[] = []

/** Reads one answer in messages. Only `message_stop` completes it. */
export class MessagesReader implements AnswerReader {
  #started = false
  #finished = false
  readonly #parser = new EventParser()
  #stopReason: Json | undefined
  readonly #blocks = new BlockReader()
  readonly #usage = new UsageReader()

  get finished(): boolean {
    return this.#finished
  }

  get lastData(): JsonObject | undefined {
    return this.#parser.last
  }

  readEvent(data: string, name?: string): readonly AnswerEvent[] {
    if (this.#finished) return nothing
    throwNamedError(name, data, classifyMessagesError)
    // Not of this format, but some proxies add it.
    if (data === '[DONE]') return nothing
    const event = this.#parser.parse(data)
    throwError(event, classifyMessagesError)
    checkPosition(event['index'])
    const events: AnswerEvent[] = []
    switch (event['type']) {
      case 'content_block_delta':
        this.#blocks.delta(event['index'], event['delta'], events)
        break
      case 'content_block_start':
        this.#blocks.start(event['index'], event['content_block'], events)
        break
      case 'content_block_stop':
        this.#blocks.stop(event['index'], events)
        break
      case 'message_start':
        this.#readStart(event['message'], events)
        break
      case 'message_delta':
        this.#readDelta(event, events)
        break
      case 'message_stop':
        this.#finish(events)
        break
      default:
        // Unknown kinds of events are allowed, but not an event without a type or one whose type names a fault.
        if (typeof event['type'] !== 'string' || namesFault(event['type'])) throw classifyMessagesError(event)
    }
    return events
  }

  readWhole(body: JsonObject): readonly AnswerEvent[] {
    throwError(body, classifyMessagesError)
    const { content } = body
    if (!isArray(content)) throw new UpstreamError('broken')
    const events: AnswerEvent[] = []
    this.#usage.read(body['usage'])
    this.#start(body, events)
    for (let index = 0; index < content.length; index++) this.#blocks.readWhole(index, content[index]!, events)
    this.#readDelta({ delta: { stop_reason: body['stop_reason'] } }, events)
    this.#finish(events)
    return events
  }

  usageIn({ usage }: JsonObject): Usage | undefined {
    this.#usage.read(usage)
    return this.#usage.usage
  }

  #readStart(message: Json | undefined, events: AnswerEvent[]): void {
    if (this.#started || !isObject(message)) return
    // An answer that is complete at its start is counted to its end. Some servers write "" for no reason.
    if ((message['stop_reason'] ?? '') === '') this.#usage.readStart(message['usage'])
    else this.#usage.read(message['usage'])
    this.#start(message, events)
    const { usage } = this.#usage
    if (usage !== undefined) events.push({ type: 'usage', usage })
  }

  #start({ id, model }: JsonObject, events: AnswerEvent[]): void {
    this.#started = true
    events.push({
      type: 'start',
      ...(typeof id === 'string' && id !== '' && { id }),
      ...(typeof model === 'string' && model !== '' && { model }),
    })
  }

  #readDelta({ delta, usage: counted }: JsonObject, events: AnswerEvent[]): void {
    this.#usage.read(counted)
    const { usage } = this.#usage
    if (usage !== undefined) events.push({ type: 'usage', usage })
    const reason = errorText(isObject(delta) ? delta['stop_reason'] : delta)
    if (reason === '') return
    // Before anything is written: the relay lane passes this event on.
    readStopReason(reason, 0)
    this.#stopReason = reason
  }

  #finish(events: AnswerEvent[]): void {
    if (!this.#started) throw new UpstreamError('broken')
    this.#blocks.stopAll(events)
    const reason = readStopReason(this.#stopReason, this.#blocks.callCount)
    this.#finished = true
    events.push({ type: 'finish', reason })
  }
}
