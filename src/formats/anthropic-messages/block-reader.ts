import type { AnswerEvent } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { errorText } from '../answer-faults.ts'
import { isArray } from '../fields.ts'
import { encryptedFromRedacted, encryptedFromThinking } from './encrypted-reasoning.ts'

/** An open content block. */
interface OpenBlock {
  readonly type: Json | undefined
  /** For calls: the index of the call. */
  readonly callIndex: number
  /** For calls: input that was sent whole instead of in deltas. */
  readonly input: Json | undefined
  hasDeltas: boolean
  signature: string
  readonly citations: JsonObject[]
  /** The offset of its text in the text of the whole answer, in characters. */
  readonly from: number
}

/** Reads the content blocks of one answer into events. */
export class BlockReader {
  callCount = 0
  readonly #open = new Map<Json | undefined, OpenBlock>()
  #textLength = 0

  start(index: Json | undefined, block: Json | undefined, events: AnswerEvent[]): void {
    if (!isObject(block)) throw new UpstreamError('broken')
    const { type } = block
    const callIndex = type === 'tool_use' ? this.callCount++ : -1
    const { signature } = block
    const open: OpenBlock = {
      type,
      callIndex,
      input: block['input'],
      hasDeltas: false,
      signature: typeof signature === 'string' ? signature : '',
      citations: [],
      from: this.#textLength,
    }
    this.#open.set(index, open)
    if (type === 'text') {
      this.#emitText(block['text'], events)
      if (isArray(block['citations'])) for (const citation of block['citations']) addCitation(open, citation)
    } else if (type === 'tool_use') {
      const { id, name } = block
      events.push({
        type: 'call',
        index: callIndex,
        kind: 'function',
        id: typeof id === 'string' ? id : '',
        name: typeof name === 'string' ? name : '',
      })
    } else if (type === 'redacted_thinking') {
      const { data } = block
      if (typeof data === 'string') events.push({ type: 'reasoning_end', sealed: encryptedFromRedacted(data) })
    } else {
      // Hidden thinking and tools that run at the provider may take minutes without output, but the answer has already
      // started.
      events.push({ type: 'reasoning_end' })
      if (type === 'thinking') think(block['thinking'], events)
    }
  }

  /** Hot path: most events of an answer are deltas. */
  delta(index: Json | undefined, delta: Json | undefined, events: AnswerEvent[]): void {
    if (!isObject(delta)) throw new UpstreamError('broken')
    switch (delta['type']) {
      case 'text_delta':
        this.#emitText(delta['text'], events)
        break
      case 'input_json_delta':
        this.#readInput(index, delta['partial_json'], events)
        break
      case 'thinking_delta':
        think(delta['thinking'], events)
        break
      case 'signature_delta': {
        const open = this.#open.get(index)
        if (open !== undefined && typeof delta['signature'] === 'string') open.signature += delta['signature']
        break
      }
      case 'citations_delta': {
        const open = this.#open.get(index)
        if (open !== undefined) addCitation(open, delta['citation'])
        break
      }
      default:
    }
  }

  stop(index: Json | undefined, events: AnswerEvent[]): void {
    const open = this.#open.get(index)
    if (open === undefined) return
    this.#open.delete(index)
    if (open.type === 'thinking') {
      const sealed = encryptedFromThinking(open.signature)
      events.push(sealed === undefined ? { type: 'reasoning_end' } : { type: 'reasoning_end', sealed })
    } else if (open.type === 'tool_use') {
      // Some servers send the whole input at once.
      const isEmpty = !isObject(open.input) || Object.keys(open.input).length === 0
      if (!open.hasDeltas && !isEmpty) this.#emitInput(open, events)
    }
    for (const citation of open.citations) {
      const annotation = readCitation(citation, open.from, this.#textLength)
      if (annotation !== undefined) events.push({ type: 'annotation', annotation })
    }
  }

  /** Reads a block of a whole answer. */
  readWhole(index: number, block: Json, events: AnswerEvent[]): void {
    this.start(index, block, events)
    const open = this.#open.get(index)
    if (open !== undefined && open.callIndex >= 0) this.#emitInput(open, events)
    this.stop(index, events)
  }

  /** Ends the blocks that were left open. */
  stopAll(events: AnswerEvent[]): void {
    for (const index of this.#open.keys()) this.stop(index, events)
  }

  #emitText(text: Json | undefined, events: AnswerEvent[]): void {
    const chunk = errorText(text)
    if (chunk === '') return
    this.#textLength += chunk.length
    events.push({ type: 'text', text: chunk })
  }

  #emitInput(open: OpenBlock, events: AnswerEvent[]): void {
    open.hasDeltas = true
    events.push({ type: 'call_arguments', index: open.callIndex, text: JSON.stringify(open.input ?? {}) })
  }

  #readInput(index: Json | undefined, text: Json | undefined, events: AnswerEvent[]): void {
    const open = this.#open.get(index)
    const chunk = errorText(text)
    if (open === undefined || open.callIndex < 0 || chunk === '') return
    open.hasDeltas = true
    events.push({ type: 'call_arguments', index: open.callIndex, text: chunk })
  }
}

function think(text: Json | undefined, events: AnswerEvent[]): void {
  const chunk = errorText(text)
  if (chunk !== '') events.push({ type: 'reasoning', text: chunk })
}

function addCitation(open: OpenBlock, citation: Json | undefined): void {
  if (isObject(citation)) open.citations.push(citation)
}

/**
 * A citation in the common form; undefined for citations of a document in the request, which have no URL. Here a
 * citation supports the whole text block that it came with, from `from` to `to`.
 */
function readCitation(citation: JsonObject, from: number, to: number): JsonObject | undefined {
  const { type, url, source, title } = citation
  const address = type === 'search_result_location' ? source : url
  if (typeof address !== 'string') return undefined
  return {
    type: 'url_citation',
    url: address,
    title: typeof title === 'string' ? title : address,
    start_index: from,
    end_index: to,
  }
}
