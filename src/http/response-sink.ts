import type { ServerResponse } from 'node:http'
import type { AnswerHead, AnswerSink } from '../gateway/ports.ts'
import { headerList, reliabilityLines, usageLines } from './usage-headers.ts'

/** On the response to a retry (contract 39.7). */
export const replayedHeader = ['Idempotent-Replayed', 'true'] as const

/** Up to this size a whole answer is joined with its headers. */
const maxJoinedBytes = 12 * 1024
/**
 * Longer text is encoded in pieces of this size: the C library maps and unmaps the memory of blocks of 32 KiB and more
 * each time, which costs more than the rest of the write (decision 26).
 */
const pieceChars = 24 * 1024

/** Writes an answer to a caller's connection. */
export class ResponseSink implements AnswerSink {
  readonly #response: ServerResponse
  readonly #requestId: string
  readonly #nowMs: () => number
  readonly #idHeader: string | undefined
  #head: AnswerHead | undefined
  #isHeld = false
  #endsOnRelease = false

  /** `idHeader`: a second header for the request id, for clients that do not read `X-Request-Id`. */
  constructor(response: ServerResponse, requestId: string, nowMs: () => number, idHeader: string | undefined) {
    this.#response = response
    this.#requestId = requestId
    this.#nowMs = nowMs
    this.#idHeader = idHeader
  }

  open(head: AnswerHead): void {
    this.#head = head
    if (head.stream) this.#writeHead(head, undefined)
  }

  write(bytes: string | Uint8Array, encoding: 'latin1' | 'utf8' = 'utf8'): boolean {
    if (this.#response.destroyed) return true
    // Buffered text is encoded now rather than between the delivery mark and the send.
    if (this.#isHeld) {
      return typeof bytes === 'string' ? this.#writeEncoded(bytes, encoding) : this.#response.write(bytes)
    }
    // Node collects the writes of one turn and sends them afterwards in one system call.
    return typeof bytes === 'string' ? this.#response.write(bytes, encoding) : this.#response.write(bytes)
  }

  end(bytes?: string | Uint8Array, encoding: 'latin1' | 'utf8' = 'utf8'): void {
    if (this.#response.destroyed) return
    if (this.#isHeld && typeof bytes === 'string' && bytes.length > maxJoinedBytes && this.#response.headersSent) {
      this.#writeEncoded(bytes, encoding)
      this.#endsOnRelease = true
      return
    }
    // A character of latin1 is a byte.
    const isJoined = typeof bytes === 'string' && encoding === 'latin1' && bytes.length <= maxJoinedBytes
    const last = typeof bytes === 'string' && !isJoined ? Buffer.from(bytes, encoding) : bytes
    if (!this.#response.headersSent && this.#head !== undefined) this.#writeHead(this.#head, last?.length ?? 0)
    if (this.#isHeld) {
      // Node would send at once when the answer ends.
      if (last !== undefined && last.length > 0) this.#writeWhole(last)
      this.#endsOnRelease = true
    } else if (last === undefined || last.length === 0) this.#response.end()
    else this.#response.end(last, 'latin1')
  }

  hold(): void {
    this.#isHeld = true
    this.#response.socket?.cork()
  }

  release(): void {
    this.#isHeld = false
    if (this.#response.destroyed) return
    this.#response.socket?.uncork()
    if (this.#endsOnRelease) this.#response.end()
  }

  drop(): void {
    this.#response.destroy()
  }

  onDrain(run: () => void): void {
    this.#response.on('drain', run)
  }

  onDisconnect(run: () => void): void {
    const response = this.#response
    if (response.destroyed) run()
    else
      response.on('close', () => {
        if (!response.writableEnded) run()
      })
  }

  #writeEncoded(text: string, encoding: 'latin1' | 'utf8'): boolean {
    // Text in UTF-8 cannot be split anywhere.
    const step = encoding === 'latin1' ? pieceChars : text.length
    let wantsMore = true
    for (let at = 0; at < text.length; at += step)
      wantsMore = this.#response.write(Buffer.from(text.slice(at, at + step), encoding))
    return wantsMore
  }

  /**
   * Node sends text in one piece with its headers, and bytes separately. Copying so short a text takes a microsecond
   * or two.
   */
  #writeWhole(bytes: string | Uint8Array): void {
    if (typeof bytes === 'string') this.#response.write(bytes, 'latin1')
    else if (bytes.length > maxJoinedBytes || !Buffer.isBuffer(bytes)) this.#response.write(bytes)
    else this.#response.write(bytes.toString('latin1'), 'latin1')
  }

  #writeHead(head: AnswerHead, length: number | undefined): void {
    const id = this.#requestId
    const isStream = length === undefined
    const type = isStream ? 'text/event-stream; charset=utf-8' : 'application/json; charset=utf-8'
    let lines = `Content-Type: ${type}\r\nX-Request-Id: ${id}\r\nCache-Control: no-store\r\n`
    // Proxies buffer streams unless this header disables it.
    if (isStream) lines += 'X-Accel-Buffering: no\r\n'
    if (this.#idHeader !== undefined) lines += `${this.#idHeader}: ${id}\r\n`
    if (head.isReplayed === true) lines += `${replayedHeader.join(': ')}\r\n`
    lines += reliabilityLines(head) + usageLines(head.signals, this.#nowMs())
    writeLines(this.#response, lines, isStream ? [] : ['Content-Length', String(length)])
  }
}

/** What `writeHead` calls with a status line and headers. It is in every Node version, but not documented. */
interface HeadWriter extends ServerResponse {
  _storeHeader?(statusLine: string, headers: readonly string[]): void
}

/**
 * Writes the head of a 200 from `lines`, which contain nothing that a header cannot, and `headers`. `writeHead` would check
 * the characters of each header again, and look for those that concern the connection, which takes 3 µs (decision 55).
 */
function writeLines(response: HeadWriter, lines: string, headers: readonly string[]): void {
  if (response._storeHeader === undefined || response.getHeaderNames().length > 0)
    response.writeHead(200, [...headerList(lines), ...headers])
  else response._storeHeader(`HTTP/1.1 200 OK\r\n${lines}`, headers)
}
