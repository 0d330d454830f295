import type { AnswerEvent } from '../../domain/conversation.ts'
import { type Json, isObject } from '../../domain/json.ts'
import { errorText } from '../answer-faults.ts'

interface OpenCall {
  readonly index: number
  readonly id: string
}

/**
 * Reads the tool calls of one answer. Providers number them, but not all correctly: some omit the index, some send 0
 * for every call, some repeat id and name in each chunk.
 */
export class CallReader {
  count = 0
  /** Created by the first call: most answers have none. */
  #slots: Map<number, OpenCall> | undefined
  #last: OpenCall | undefined

  /**
   * Reads one entry of `tool_calls`. A chunk of a call that never started is skipped. @throws UpstreamError `broken`
   * for a name or arguments of another type
   */
  read(entry: Json, events: AnswerEvent[]): void {
    if (!isObject(entry)) return
    const custom = entry['custom']
    const isCustom = isObject(custom)
    const called = isCustom ? custom : entry['function']
    if (!isObject(called)) return
    const name = errorText(called['name'])
    const text = isCustom ? called['input'] : called['arguments']
    const slot = typeof entry['index'] === 'number' ? entry['index'] : undefined
    const id = typeof entry['id'] === 'string' ? entry['id'] : ''
    let call = slot === undefined ? this.#last : this.#slots?.get(slot)
    const opens = call === undefined || (id === '' ? slot === undefined : id !== call.id)
    if (opens && name !== '') {
      call = { index: this.count++, id }
      if (slot !== undefined) (this.#slots ??= new Map()).set(slot, call)
      events.push({ type: 'call', index: call.index, kind: isCustom ? 'custom' : 'function', id, name })
    }
    if (call === undefined) return
    this.#last = call
    if (typeof text === 'string') {
      if (text !== '') events.push({ type: 'call_arguments', index: call.index, text })
    } else if (isObject(text)) {
      // Arguments sent as an object instead of its JSON text.
      events.push({ type: 'call_arguments', index: call.index, text: JSON.stringify(text) })
    } else errorText(text)
  }
}
