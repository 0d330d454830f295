import type { AnswerEvent, Json, JsonObject } from '../../domain/conversation.ts'
import { isObject } from '../../domain/json.ts'
import { saidText } from '../answer-faults.ts'
import { isArray } from '../fields.ts'

/** What we have seen of one output item. `heard` is what its deltas have said: what they left out is read at its end. */
interface ItemState {
  heard: boolean
  /** For calls: the number of the call. */
  readonly callIndex: number
  /** For reasoning: whether its text comes as summary or raw; only the first of them is told. */
  voice: 'summary' | 'raw' | undefined
}

/** Follows the output items of one answer and tells what they say. */
export class ItemReader {
  callCount = 0
  /** By `output_index`. An item stays until the answer ends, so that its copy in the final event is not told again. */
  readonly #items = new Map<Json | undefined, ItemState>()
  #hasContent = false

  /** Reads any event but those of the response itself; unknown ones are passed over. */
  read(event: JsonObject, events: AnswerEvent[]): void {
    const { type, delta } = event
    switch (type) {
      case 'response.output_item.added':
        this.#open(event['output_index'], event['item'], events)
        break
      case 'response.output_item.done':
        this.#close(event['output_index'], event['item'], events)
        break
      case 'response.output_text.delta':
        this.#hear(event)
        pushText(delta, event['logprobs'], events)
        break
      case 'response.refusal.delta':
        this.#hear(event)
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
        // The first part needs no space before it.
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

  /** Reads the items of a whole answer, or of a final event, that have not been told yet. */
  readOutput(output: readonly Json[], events: AnswerEvent[]): void {
    // A stream that was only partly read (the relay lane) is not read a second time.
    if (this.#items.size > 0 || this.#hasContent) return
    for (let index = 0; index < output.length; index++) this.#close(index, output[index], events)
  }

  #open(place: Json | undefined, item: Json | undefined, events: AnswerEvent[]): ItemState | undefined {
    if (!isObject(item)) return undefined
    const kind =
      item['type'] === 'function_call' ? 'function' : item['type'] === 'custom_tool_call' ? 'custom' : undefined
    const state: ItemState = { heard: false, callIndex: kind === undefined ? -1 : this.callCount++, voice: undefined }
    this.#items.set(place, state)
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

  #close(place: Json | undefined, item: Json | undefined, events: AnswerEvent[]): void {
    if (!isObject(item)) return
    const state = this.#items.get(place) ?? this.#open(place, item, events)
    if (state === undefined) return
    const { type } = item
    if (!state.heard) {
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
    state.heard = true
  }

  #readArguments(event: JsonObject, text: Json | undefined, events: AnswerEvent[]): void {
    const item = this.#hear(event)
    const said = saidText(text)
    if (item === undefined || item.callIndex < 0 || said === '') return
    events.push({ type: 'call_arguments', index: item.callIndex, text: said })
  }

  #hear(event: JsonObject): ItemState | undefined {
    this.#hasContent = true
    const item = this.#items.get(event['output_index'])
    if (item !== undefined) item.heard = true
    return item
  }

  #think(event: JsonObject, voice: 'summary' | 'raw', text: Json | undefined, events: AnswerEvent[]): void {
    const item = this.#hear(event)
    const said = saidText(text)
    if (item !== undefined) {
      item.voice ??= voice
      if (item.voice !== voice) return
    }
    if (said !== '') events.push({ type: 'reasoning', text: said })
  }
}

function pushText(text: Json | undefined, logprobs: Json | undefined, events: AnswerEvent[]): void {
  const said = saidText(text)
  if (isArray(logprobs) && logprobs.length > 0) events.push({ type: 'text', text: said, logprobs })
  else if (said !== '') events.push({ type: 'text', text: said })
}

function pushRefusal(text: Json | undefined, events: AnswerEvent[]): void {
  const said = saidText(text)
  if (said !== '') events.push({ type: 'refusal', text: said })
}

function readMessage(item: JsonObject, events: AnswerEvent[]): void {
  const { content } = item
  if (!isArray(content)) return
  for (const part of content) {
    if (!isObject(part)) continue
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
