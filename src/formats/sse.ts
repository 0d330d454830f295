import { UpstreamError } from '../domain/upstream.ts'
import { TextBuffer } from './text-buffer.ts'

/**
 * Maximum bytes of one line, and of one event's data: enough for an image, and for a terminal event that repeats a long
 * answer. Anything longer is an attack or a fault.
 */
export const maxEventBytes = 8 * 1024 * 1024
/** `data:` lines of one event. Pretty-printed JSON has thousands; millions of empty ones would only cost memory. */
const maxDataLines = 65_536
/** UTF-8's byte order mark, with one character per byte. */
const byteOrderMark = '\u00ef\u00bb\u00bf'
const lineFeed = 0x0a
const space = 0x20
const beyondAscii = /[\u0080-\u00ff]/
const nothing: readonly SseEvent[] = []

/** One server-sent event: its name, absent if it has none, and its data lines joined by line feeds. */
export interface SseEvent {
  readonly event?: string
  readonly data: string
  /** A line of the event has a field that the standard does not define: raw JSON, HTML, `error: …` (contract 10.6). */
  readonly malformed?: true
}

/**
 * Reads server-sent events from bytes that arrive in pieces of any size; one reader per stream. Every split of the same
 * bytes gives the same events, in linear time. Skips comments, `id`, `retry`, and events without data unless they are
 * named `error`.
 */
export class SseReader {
  /** The incomplete line; like all text until `#dispatch`, it has one character per byte. */
  readonly #line = new TextBuffer()
  #data: string | undefined
  #dataLines = 0
  #malformed = false
  #event = ''
  #atStart = true
  /** Whether the last piece ended in a carriage return: a line feed after it belongs to it. */
  #afterReturn = false

  /**
   * Reads the next bytes, or the same as latin1 text. @throws UpstreamError `broken` for an event above `maxEventBytes`
   */
  push(chunk: Uint8Array | string): readonly SseEvent[] {
    const text = typeof chunk === 'string' ? chunk : latin1(chunk)
    if (text === '') return nothing
    let events: SseEvent[] | undefined
    let from = this.#afterReturn && text.charCodeAt(0) === lineFeed ? 1 : 0
    this.#afterReturn = false
    let feed = text.indexOf('\n', from)
    let carriage = text.indexOf('\r', from)
    while (feed >= 0 || carriage >= 0) {
      const isReturn = carriage >= 0 && (feed < 0 || carriage < feed)
      const end = isReturn ? carriage : feed
      const event = this.#endLine(text.slice(from, end))
      if (event !== undefined) (events ??= []).push(event)
      from = end + 1
      if (!isReturn) {
        feed = text.indexOf('\n', from)
        continue
      }
      if (feed === from) {
        from += 1
        feed = text.indexOf('\n', from)
      }
      this.#afterReturn = end + 1 === text.length
      carriage = text.indexOf('\r', from)
    }
    if (from < text.length) {
      this.#line.add(from === 0 ? text : text.slice(from))
      if (this.#line.length > maxEventBytes) throw new UpstreamError('broken')
    }
    return events ?? nothing
  }

  /** Bytes of an incomplete event; 0 between events. */
  get waiting(): number {
    return this.#line.length + (this.#data?.length ?? 0) + this.#event.length
  }

  /** The last event when the stream ends: some endpoints omit the empty line after it. */
  end(): readonly SseEvent[] {
    if (this.#line.length > 0) this.#endLine('')
    const event = this.#dispatch()
    return event === undefined ? nothing : [event]
  }

  #endLine(tail: string): SseEvent | undefined {
    let line = this.#line.length === 0 ? tail : this.#line.take() + tail
    if (line.length > maxEventBytes) throw new UpstreamError('broken')
    if (this.#atStart) {
      this.#atStart = false
      if (line.startsWith(byteOrderMark)) line = line.slice(byteOrderMark.length)
    }
    if (line === '') return this.#dispatch()
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    if (field !== 'data' && field !== 'event') {
      if (!isPassedOver(field)) this.#malformed = true
      return undefined
    }
    const value = colon < 0 ? '' : line.slice(line.charCodeAt(colon + 1) === space ? colon + 2 : colon + 1)
    if (field === 'event') this.#event = value
    else this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`
    if (field === 'data') this.#dataLines += 1
    if (this.#dataLines > maxDataLines || (this.#data ?? '').length > maxEventBytes) throw new UpstreamError('broken')
    return undefined
  }

  #dispatch(): SseEvent | undefined {
    // An event without data is a ping, unless its name marks an error.
    const data = this.#data || (this.#event === 'error' ? '' : undefined)
    const event = this.#event
    const isMalformed = this.#malformed
    this.#data = undefined
    this.#event = ''
    this.#dataLines = 0
    this.#malformed = false
    if (isMalformed) return { data: '', malformed: true }
    if (data === undefined) return undefined
    return event === '' ? { data: decode(data) } : { event: decode(event), data: decode(data) }
  }
}

/** Comments have an empty field name. A blank line is skipped too. */
function isPassedOver(field: string): boolean {
  return field === '' || field === 'id' || field === 'retry' || field.trim() === ''
}

function latin1(chunk: Uint8Array): string {
  const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  return bytes.toString('latin1')
}

function decode(text: string): string {
  return beyondAscii.test(text) ? Buffer.from(text, 'latin1').toString('utf8') : text
}
