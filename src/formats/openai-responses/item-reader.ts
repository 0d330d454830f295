import type { AnswerEvent } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { errorObjects, errorText } from '../answer-faults.ts'
import { isArray } from '../fields.ts'

type Kind = 'message' | 'reasoning' | 'call' | 'other'

/**
 * The state of one output item. `isRead`: whether any of its content came as a delta; if not, it is read when the item
 * ends.
 */
interface ItemState {
  isRead: boolean
  isClosed: boolean
  /** Whether it has an item id or a call id of its own. */
  readonly isNamed: boolean
  /** For calls: the index of the call. */
  readonly callIndex: number
  /** For reasoning: whether its text comes as summary or raw; only the first kind to arrive is used. */
  source: 'summary' | 'raw' | undefined
}

/**
 * Reads the output items of one answer into events. Some servers leave out `output_index`: their items are identified
 * by id, or otherwise by the order in which they arrive.
 */
export class ItemReader {
  callCount = 0
  /**
   * By `output_index` (a number), and by `id` and `call_id` (strings) for items without one. An item stays until the
   * answer ends, so that its copy in the final event is not read again.
   */
  readonly #items = new Map<number | string, ItemState>()
  /** The most recently started item of each kind. */
  readonly #latest = new Map<Kind, ItemState>()
  #hasContent = false

  /** Reads any event except those about the response itself; unknown ones are skipped. */
  read(event: JsonObject, events: AnswerEvent[]): void {
    const { type, delta } = event
    switch (type) {
      case 'response.output_item.added':
        this.#open(indexOf(event), event['item'], events)
        break
      case 'response.output_item.done':
        this.#close(indexOf(event), event['item'], events)
        break
      case 'response.output_text.delta':
        this.#markRead(event, 'message')
        pushText(delta, event['logprobs'], events)
        break
      case 'response.refusal.delta':
        this.#markRead(event, 'message')
        pushRefusal(delta, events)
        break
      case 'response.output_text.annotation.added':
        if (isObject(event['annotation'])) events.push({ type: 'annotation', annotation: event['annotation'] })
        break
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        this.#readArguments(event, delta, events)
        break
      case 'response.reasoning_summary_part.added':
        // The first part needs no separator before it.
        if (Number(event['summary_index']) > 0) this.#think(event, 'summary', '\n\n', events)
        break
      case 'response.reasoning_summary_text.delta':
        this.#think(event, 'summary', delta, events)
        break
      case 'response.reasoning_text.delta':
      case 'response.reasoning.delta':
        this.#think(event, 'raw', delta, events)
        break
      default:
    }
  }

  /** Whether any item or content was read. */
  get hasAny(): boolean {
    return this.#latest.size > 0 || this.#hasContent
  }

  /** Reads the items of a whole answer, or of a final event, that were not read yet. */
  readOutput(output: readonly Json[], events: AnswerEvent[]): void {
    // A stream that was only partly read (relaying) is not read a second time.
    if (this.hasAny) return
    for (let index = 0; index < output.length; index++) this.#close(index, output[index], events)
  }

  #open(index: number | undefined, item: Json | undefined, events: AnswerEvent[]): ItemState {
    if (!isObject(item)) throw new UpstreamError('broken')
    const kind =
      item['type'] === 'function_call' ? 'function' : item['type'] === 'custom_tool_call' ? 'custom' : undefined
    const names = index === undefined ? idsOf(item) : [index]
    const state: ItemState = {
      isRead: false,
      isClosed: false,
      isNamed: names.length > 0,
      callIndex: kind === undefined ? -1 : this.callCount++,
      source: undefined,
    }
    for (const name of names) this.#items.set(name, state)
    this.#latest.set(kindOf(item), state)
    const { call_id: id, name, namespace } = item
    if (kind !== undefined) {
      events.push({
        type: 'call',
        index: state.callIndex,
        kind,
        id: typeof id === 'string' ? id : '',
        name: typeof name === 'string' ? name : '',
        ...(typeof namespace === 'string' && namespace !== '' && { namespace }),
      })
    }
    return state
  }

  #close(index: number | undefined, item: Json | undefined, events: AnswerEvent[]): void {
    if (!isObject(item)) throw new UpstreamError('broken')
    const known = index === undefined ? this.#endingItem(item) : this.#items.get(index)
    const state = known ?? this.#open(index, item, events)
    state.isClosed = true
    const { type } = item
    if (!state.isRead) {
      if (type === 'message') readMessage(item, events)
      else if (type === 'reasoning') readReasoning(item, events)
      else if (state.callIndex >= 0) {
        const text = item['type'] === 'custom_tool_call' ? item['input'] : item['arguments']
        if (typeof text === 'string' && text !== '')
          events.push({ type: 'call_arguments', index: state.callIndex, text })
      }
    }
    if (type === 'reasoning') {
      const sealed = item['encrypted_content']
      events.push(
        typeof sealed === 'string' && sealed !== '' ? { type: 'reasoning_end', sealed } : { type: 'reasoning_end' },
      )
    }
    state.isRead = true
  }

  #readArguments(event: JsonObject, text: Json | undefined, events: AnswerEvent[]): void {
    const item = this.#markRead(event, 'call')
    const chunk = errorText(text)
    if (item === undefined || item.callIndex < 0 || chunk === '') return
    events.push({ type: 'call_arguments', index: item.callIndex, text: chunk })
  }

  #markRead(event: JsonObject, kind: Kind): ItemState | undefined {
    this.#hasContent = true
    const index = indexOf(event)
    const item = index === undefined ? this.#currentItem(event['item_id'], kind) : this.#items.get(index)
    if (item !== undefined) item.isRead = true
    return item
  }

  /** The item of a delta without an index: the one with that id, or the most recently started one of its kind. */
  #currentItem(id: Json | undefined, kind: Kind): ItemState | undefined {
    return (typeof id === 'string' ? this.#items.get(id) : undefined) ?? this.#latest.get(kind)
  }

  /** The ending item without an index: the one with one of its ids, or the most recently started one of its kind. */
  #endingItem(item: JsonObject): ItemState | undefined {
    const ids = idsOf(item)
    for (const id of ids) {
      const state = this.#items.get(id)
      if (state !== undefined) return state
    }
    const kind = kindOf(item)
    const latest = this.#latest.get(kind)
    // Two calls with different ids are different calls.
    const isOther = kind === 'call' && ids.length > 0 && latest?.isNamed === true
    return latest === undefined || latest.isClosed || isOther ? undefined : latest
  }

  #think(event: JsonObject, source: 'summary' | 'raw', text: Json | undefined, events: AnswerEvent[]): void {
    const item = this.#markRead(event, 'reasoning')
    const chunk = errorText(text)
    if (item !== undefined) {
      item.source ??= source
      if (item.source !== source) return
    }
    if (chunk !== '') events.push({ type: 'reasoning', text: chunk })
  }
}

function kindOf({ type }: JsonObject): Kind {
  if (type === 'message' || type === 'reasoning') return type
  return type === 'function_call' || type === 'custom_tool_call' ? 'call' : 'other'
}

function indexOf({ output_index: index }: JsonObject): number | undefined {
  return typeof index === 'number' ? index : undefined
}

function idsOf({ id, call_id: callId }: JsonObject): string[] {
  return [id, callId].filter((one) => typeof one === 'string' && one !== '') as string[]
}

function pushText(text: Json | undefined, logprobs: Json | undefined, events: AnswerEvent[]): void {
  const chunk = errorText(text)
  if (isArray(logprobs) && logprobs.length > 0) events.push({ type: 'text', text: chunk, logprobs })
  else if (chunk !== '') events.push({ type: 'text', text: chunk })
}

function pushRefusal(text: Json | undefined, events: AnswerEvent[]): void {
  const chunk = errorText(text)
  if (chunk !== '') events.push({ type: 'refusal', text: chunk })
}

function readMessage(item: JsonObject, events: AnswerEvent[]): void {
  for (const part of errorObjects(item['content'])) {
    const { type, text, refusal, annotations } = part
    if (type === 'output_text') pushText(text, part['logprobs'], events)
    else if (type === 'refusal') pushRefusal(refusal, events)
    if (!isArray(annotations)) continue
    for (const annotation of annotations) if (isObject(annotation)) events.push({ type: 'annotation', annotation })
  }
}

function readReasoning(item: JsonObject, events: AnswerEvent[]): void {
  let isFirst = true
  const { summary, content } = item
  const parts = isArray(summary) && summary.length > 0 ? summary : content
  if (!isArray(parts)) return
  for (const part of parts) {
    if (!isObject(part) || typeof part['text'] !== 'string' || part['text'] === '') continue
    events.push({ type: 'reasoning', text: isFirst ? part['text'] : `\n\n${part['text']}` })
    isFirst = false
  }
}
