import { isObject, type Json } from '../../domain/json.ts'
import { dataOfLines } from '../../formats/patch-json.ts'
import type { RelayState, StreamRules } from '../../formats/relay.ts'
import type { StreamFailure } from '../../formats/stream-failure.ts'

const idLine = '\nid: '
const eventEnd = '\n\n'
const longestId = 12

/**
 * Adds an `id` line to the events of one stream, so that a client can continue after the last one that it received
 * (contract 39.6). In a format with sequence numbers the ID is that number; otherwise events are counted from 0.
 */
export class EventIds {
  readonly #isNumbered: boolean
  #last: number

  /** `last` is the ID of the last event so far; -1 if there is none. */
  constructor({ numbered }: Pick<StreamRules, 'numbered'>, last = -1) {
    this.#isNumbered = numbered
    this.#last = last
  }

  /** `events` are whole events; comments stay as they are. */
  add(events: string): string {
    return blocksOf(events)
      .map((block) => {
        const id = this.#idOf(block)
        return id === undefined ? `${block}\n\n` : `${block}${idLine}${id}\n\n`
      })
      .join('')
  }

  #idOf(block: string): number | undefined {
    const data = dataOf(block)
    if (data === '') return undefined
    if (!this.#isNumbered) return ++this.#last
    const number = sequenceOf(data)
    if (number !== undefined) this.#last = number
    return number
  }
}

/** Leaves out the events of a stream up to and including one. */
export class EventSkip {
  readonly #after: number
  #isSkipping = true
  /** The beginning of an event whose rest is in the next chunk. */
  #unfinished: Buffer = Buffer.alloc(0)

  constructor(after: number) {
    this.#after = after
  }

  /** Takes the next chunk and returns what the client has not received, without copying it. */
  rest(chunk: Buffer): Buffer {
    if (!this.#isSkipping) return chunk
    const events = this.#unfinished.length === 0 ? chunk : Buffer.concat([this.#unfinished, chunk])
    let at = 0
    for (let end = events.indexOf(eventEnd); end >= 0; end = events.indexOf(eventEnd, at)) {
      const id = idOf(events.subarray(at, end).toString('latin1'))
      if (id !== undefined && id > this.#after) return this.#from(events, at)
      at = end + eventEnd.length
      if (id === this.#after) return this.#from(events, at)
    }
    this.#unfinished = events.subarray(at)
    return Buffer.alloc(0)
  }

  #from(events: Buffer, at: number): Buffer {
    this.#isSkipping = false
    this.#unfinished = Buffer.alloc(0)
    return events.subarray(at)
  }
}

/**
 * The end of a stream that broke off, in its own format, continuing its IDs (contract 39.8). `events` are all so far;
 * `failure` is undefined if it was canceled.
 */
export function brokenEnd(rules: StreamRules, events: Buffer, failure: StreamFailure | undefined): Buffer {
  const state: RelayState = { sequence: -1, inserted: 0 }
  if (rules.numbered) {
    // The first event has the response object, and the last one the latest number.
    const first = events.subarray(0, Math.max(0, events.indexOf('\n\n')))
    const last = events.subarray(Math.max(0, events.lastIndexOf('data:')))
    for (const block of [first, last]) {
      const data = parsed(dataOf(block.toString('utf8')))
      if (isObject(data)) rules.observe?.(data, state)
    }
  }
  const end = failure === undefined ? (rules.canceled?.(state) ?? '') : rules.failure(failure, state)
  return Buffer.from(new EventIds(rules, lastId(events)).add(end))
}

function lastId(events: Buffer): number {
  const at = events.lastIndexOf(idLine)
  return at < 0
    ? -1
    : Number.parseInt(events.toString('latin1', at + idLine.length, at + idLine.length + longestId), 10)
}

function idOf(block: string): number | undefined {
  const at = block.lastIndexOf(idLine)
  return at < 0 ? undefined : Number.parseInt(block.slice(at + idLine.length), 10)
}

function blocksOf(events: string): readonly string[] {
  const blocks = events.split('\n\n')
  // Whole events end with an empty line.
  if (blocks.at(-1) === '') blocks.pop()
  return blocks
}

function dataOf(block: string): string {
  return dataOfLines(block.split('\n'))
}

function sequenceOf(data: string): number | undefined {
  const event = parsed(data)
  const number = isObject(event) ? event['sequence_number'] : undefined
  return typeof number === 'number' ? number : undefined
}

/** `[DONE]` is not JSON. */
function parsed(data: string): Json | undefined {
  try {
    return JSON.parse(data) as Json
  } catch {
    return undefined
  }
}
