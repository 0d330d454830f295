import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import type { JsonObject } from '../../domain/json.ts'
import { dataOfLines } from '../../formats/patch-json.ts'
import type { AnswerHead, AnswerSink } from '../../gateway/ports.ts'
import { headersObject, reliabilityHeaders, usageHeaders } from '../usage-headers.ts'

const done = '[DONE]'
const textFrame = { binary: false, compress: false } as const
/**
 * The events that report how an answer ended. Searched in the text of several events; inside a JSON string the quotes
 * would be escaped.
 */
const mustInspect = /"type"\s*:\s*"(?:response\.(?:completed|incomplete)|error)"/
const colon = 0x3a
const space = 0x20

/** The connection of a sink: the WebSocket and its underlying socket. */
export interface SocketEnd {
  readonly socket: WebSocket
  readonly raw: Socket
}

/** Writes one answer to a WebSocket: every event is one JSON message (contract 14). */
export class SocketSink implements AnswerSink {
  /** Whether any of the answer was sent. */
  isOpen = false
  readonly #end: SocketEnd
  readonly #requestId: string
  readonly #nowMs: () => number
  readonly #onEnding: (event: JsonObject) => void
  /** Added to every message of the answer, after its opening brace. */
  #marks = ''
  /** Added to the first message only: what HTTP would send as headers (contract 14.2). */
  #headers = ''
  #isOver = false
  readonly #over = Promise.withResolvers<void>()
  #onDisconnect: (() => void) | undefined
  #drained: (() => void) | undefined

  /** `onEnding` gets the events that report how the answer ended, before they are sent. */
  constructor(end: SocketEnd, requestId: string, nowMs: () => number, onEnding: (event: JsonObject) => void) {
    this.#end = end
    this.#requestId = requestId
    this.#nowMs = nowMs
    this.#onEnding = onEnding
  }

  /** Resolves when the answer has been sent, or nothing more can be. */
  get over(): Promise<void> {
    return this.#over.promise
  }

  /** Whether `streamId` was set. */
  get hasStreamId(): boolean {
    return this.#marks !== ''
  }

  /** The caller's own name for this answer. */
  set streamId(id: string) {
    this.#marks = `"stream_id":${JSON.stringify(id)},`
  }

  open(head: AnswerHead): void {
    this.isOpen = true
    const signals = usageHeaders(head.signals, this.#nowMs())
    const headers = ['X-Request-Id', this.#requestId, ...reliabilityHeaders(head), ...signals]
    this.#headers = `"headers":${JSON.stringify(headersObject(headers))},`
  }

  write(bytes: string | Uint8Array, encoding: 'latin1' | 'utf8' = 'utf8'): boolean {
    if (this.#isOver) return true
    this.#send(typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString(encoding), encoding)
    return !this.#end.raw.writableNeedDrain
  }

  end(bytes?: string | Uint8Array, encoding: 'latin1' | 'utf8' = 'utf8'): void {
    if (this.#isOver) return
    if (bytes !== undefined) this.write(bytes, encoding)
    this.finish()
  }

  hold(): void {
    this.#end.raw.cork()
  }

  release(): void {
    this.#end.raw.uncork()
  }

  drop(): void {
    this.finish()
    this.#end.socket.terminate()
  }

  onDrain(run: () => void): void {
    this.#drained = run
    this.#end.raw.on('drain', run)
  }

  onDisconnect(run: () => void): void {
    if (this.#end.socket.readyState === WebSocket.OPEN) this.#onDisconnect = run
    else run()
  }

  /** Reports that the client disconnected. */
  disconnected(): void {
    const onDisconnect = this.#onDisconnect
    this.finish()
    onDisconnect?.()
  }

  /** Sends the single message that says why there is no answer. */
  refuse(message: JsonObject): void {
    if (this.#isOver) return
    this.#sendOne(JSON.stringify(message), 'utf8')
    this.finish()
  }

  /** Releases the connection: the answer is over, whatever its outcome. */
  finish(): void {
    this.#isOver = true
    this.#over.resolve()
    this.#onDisconnect = undefined
    if (this.#drained !== undefined) this.#end.raw.off('drain', this.#drained)
  }

  #send(text: string, encoding: 'latin1' | 'utf8'): void {
    const { raw } = this.#end
    const isNotable = mustInspect.test(text)
    raw.cork()
    for (const block of text.split('\n\n')) {
      const data = dataOf(block)
      if (data === '' || data === done) continue
      if (isNotable && mustInspect.test(data)) this.#notice(data, encoding)
      this.#sendOne(data, encoding)
    }
    raw.uncork()
  }

  #notice(data: string, encoding: 'latin1' | 'utf8'): void {
    const text = encoding === 'utf8' ? data : Buffer.from(data, encoding).toString('utf8')
    this.#onEnding(JSON.parse(text) as JsonObject)
  }

  #sendOne(data: string, encoding: 'latin1' | 'utf8'): void {
    const { socket } = this.#end
    if (socket.readyState !== WebSocket.OPEN) return
    const extra = this.#marks + this.#headers
    this.#headers = ''
    const text = extra === '' ? data : `{${extra}${data.slice(1)}`
    // Encoded now, so that nothing is left to prepare when buffered messages are sent.
    socket.send(Buffer.from(text, encoding), textFrame)
  }
}

/** The data of one server-sent event; empty if it has none (a comment, an empty line). */
function dataOf(block: string): string {
  if (block.charCodeAt(0) === colon) return ''
  const at = block.startsWith('data:') ? 0 : block.indexOf('\ndata:') + 1
  if (at === 0 && !block.startsWith('data:')) return ''
  if (block.includes('\n', at)) return dataOfLines(block.split('\n'))
  return block.slice(block.charCodeAt(at + 5) === space ? at + 6 : at + 5)
}
