import { Buffer } from 'node:buffer'
import { knownHeaders, type UpstreamHeaders } from './head.ts'

/** Maximum length of a status line with all headers, and of all trailers together (contract 30.13). */
const maxHeadBytes = 16 * 1024
/** Limits on all interim answers (1xx) before one answer: their number and their bytes. */
const maxInterimHeads = 64
const maxInterimBytes = 64 * 1024
/** Maximum length of a chunk's size with its extensions. */
const maxSizeLineChars = 1024
/**
 * Maximum length of all extensions of one answer's chunks together. Up to this many blanks that pad a size are not
 * counted per line.
 */
const maxExtensionChars = 16 * 1024
const uncountedSizeChars = 16
/** Maximum length of an answer's body. */
const maxAnswerBytes = 64 * 1024 * 1024
/** More hexadecimal digits than any chunk within `maxAnswerBytes` needs. */
const maxSizeDigits = 8
const chunkSize = /^([0-9A-Fa-f]{1,8})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/

const version = 'HTTP/1.'
const headEnd = '\r\n\r\n'
/** A status line, and headers of which each is a name, a colon, and a value. */
const wholeHead =
  /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*)*$/
const lineEnd = '\r\n'
const cr = 0x0d
const lf = 0x0a
/** The value of each byte as a hexadecimal digit, or -1. */
const hexDigits = Int8Array.from({ length: 256 }, (_, byte) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase()),
)

/**
 * The peer sent something other than HTTP/1.1, or exceeded a limit. The message contains nothing that the peer sent.
 */
export class HttpViolation extends Error {
  override readonly name = 'HttpViolation'
}

/** Called in this order: one head, any number of chunks, one end. */
export interface AnswerListener {
  onAnswerHead(status: number, headers: UpstreamHeaders): void
  /** A piece of the body without its framing, valid only until this returns. */
  onAnswerData(chunk: Buffer): void
  onAnswerEnd(): void
}

type Step = 'head' | 'length' | 'close' | 'size' | 'chunk' | 'chunk end' | 'trailers' | 'done'

/**
 * Reads answers to POST requests from one connection, one after another (RFC 9112). Strict: anything that two readers
 * could frame differently is a violation. All chunks of one read are delivered as one piece.
 */
export class AnswerParser {
  /** Whether the connection may carry another request after this answer. */
  keepAlive = false
  /** How long the peer keeps an idle connection open, milliseconds; undefined if it does not say. */
  peerKeepAliveMs: number | undefined
  readonly #listener: AnswerListener
  #step: Step = 'done'
  /** The start of an incomplete head: its first `#headLength` bytes. */
  #head: Buffer | undefined
  #headLength = 0
  #interimHeads = 0
  #interimBytes = 0
  /** The start of an incomplete line. */
  #line = ''
  #left = 0
  #bodyBytes = 0
  #trailerChars = 0
  #extensionChars = 0

  constructor(listener: AnswerListener) {
    this.#listener = listener
  }

  /** Whether an answer was read completely and no other is expected. */
  get isDone(): boolean {
    return this.#step === 'done'
  }

  /** A request was sent: its answer is next. */
  expect(): void {
    this.#step = 'head'
    this.#headLength = 0
    this.#interimHeads = 0
    this.#interimBytes = 0
    this.#line = ''
    this.#bodyBytes = 0
    this.#trailerChars = 0
    this.#extensionChars = 0
  }

  /** The peer closed the connection. True if that ends the answer, which is then reported. */
  close(): boolean {
    if (this.#step !== 'close') return false
    this.#end()
    return true
  }

  /** Parses what was read; may move bytes inside it, and does not retain it. @throws HttpViolation */
  push(read: Buffer): void {
    let at = 0
    while (this.#step === 'head') {
      const end = this.#takeHead(read, at)
      if (end === undefined) return
      at = end
    }
    this.#readBody(read, at)
  }

  /** Reads a head or a part of it; returns the position after it, undefined if the end is missing. */
  #takeHead(read: Buffer, from: number): number | undefined {
    const held = this.#headLength
    if (held === 0) {
      const end = read.indexOf(headEnd, from)
      if (end >= 0) {
        this.#readHead(read.toString('latin1', from, end), end + headEnd.length - from)
        return end + headEnd.length
      }
    }
    // One byte more than allowed is enough to detect the excess.
    const head = (this.#head ??= Buffer.allocUnsafe(maxHeadBytes + headEnd.length))
    const taken = read.copy(head, held, from)
    this.#headLength = held + taken
    const end = head.subarray(0, this.#headLength).indexOf(headEnd, Math.max(0, held - headEnd.length + 1))
    if (end < 0) {
      if (this.#headLength === head.length) throw new HttpViolation('the header section is too long')
      // Anything that is not HTTP may never reach the end of a head.
      const first = head.toString('latin1', 0, Math.min(version.length, this.#headLength))
      if (!version.startsWith(first)) throw new HttpViolation('the response is not HTTP')
      return undefined
    }
    this.#headLength = 0
    this.#readHead(head.toString('latin1', 0, end), end + headEnd.length)
    return from + end + headEnd.length - held
  }

  #readBody(chunk: Buffer, from: number): void {
    let at = from
    // The body bytes of this read are moved to its front, from `start` to `stop`.
    let start = at
    let stop = at
    let violation: unknown
    try {
      while (at < chunk.length && this.#step !== 'done') {
        if (this.#step === 'length' || this.#step === 'chunk' || this.#step === 'close') {
          const length = this.#step === 'close' ? chunk.length - at : Math.min(this.#left, chunk.length - at)
          this.#take(length)
          if (stop === start) start = stop = at
          else chunk.copyWithin(stop, at, at + length)
          stop += length
          at += length
        } else {
          at = this.#readPlainFraming(chunk, at) ?? this.#readLine(chunk, at)
        }
      }
    } catch (error) {
      violation = error
    }
    if (stop > start) this.#listener.onAnswerData(chunk.subarray(start, stop))
    if (violation !== undefined) throw violation
    if (at < chunk.length) this.keepAlive = false
    if (this.#step === 'done') this.#end()
  }

  #take(length: number): void {
    this.#bodyBytes += length
    if (this.#bodyBytes > maxAnswerBytes) throw new HttpViolation('the body is too long')
    if (this.#step === 'close') return
    this.#left -= length
    if (this.#left === 0) this.#step = this.#step === 'chunk' ? 'chunk end' : 'done'
  }

  /** Reads the usual framing if it is complete: the end of a chunk and a size without extensions. */
  #readPlainFraming(chunk: Buffer, from: number): number | undefined {
    if (this.#line !== '' || this.#step === 'trailers') return undefined
    let at = from
    if (this.#step === 'chunk end') {
      if (chunk[at] !== cr || chunk[at + 1] !== lf) return undefined
      at += 2
      this.#step = 'size'
    }
    const sizeAt = at
    let size = 0
    for (; at - sizeAt < maxSizeDigits; at += 1) {
      const digit = hexDigits[chunk[at] ?? 0]!
      if (digit < 0) break
      size = size * 16 + digit
    }
    // Everything read so far is valid; only the size is read again, as a line.
    if (at === sizeAt || chunk[at] !== cr || chunk[at + 1] !== lf) return sizeAt === from ? undefined : sizeAt
    this.#left = size
    this.#step = size === 0 ? 'trailers' : 'chunk'
    return at + 2
  }

  /** Reads one line of the framing or a part of it; returns the position after it. */
  #readLine(chunk: Buffer, from: number): number {
    const end = chunk.indexOf(lf, from)
    const until = end < 0 ? chunk.length : end
    const part = chunk.toString('latin1', from, until)
    this.#line = this.#line === '' ? part : this.#line + part
    if (this.#line.length > maxSizeLineChars) throw new HttpViolation('a chunk line is too long')
    if (end < 0) return until
    const line = this.#line
    this.#line = ''
    if (line.charCodeAt(line.length - 1) !== cr) throw new HttpViolation('a line feed has no carriage return before it')
    this.#readFraming(line.slice(0, -1))
    return end + 1
  }

  #readFraming(line: string): void {
    if (this.#step === 'chunk end') {
      if (line !== '') throw new HttpViolation('a chunk is longer than its size')
      this.#step = 'size'
    } else if (this.#step === 'size') {
      this.#extensionChars += Math.max(0, line.length - uncountedSizeChars)
      if (this.#extensionChars > maxExtensionChars) throw new HttpViolation('the chunk extensions are too long')
      const size = chunkSize.exec(line)?.[1]
      if (size === undefined) throw new HttpViolation('a chunk size is missing or invalid')
      this.#left = Number.parseInt(size, 16)
      this.#step = this.#left === 0 ? 'trailers' : 'chunk'
    } else if (line === '') {
      this.#step = 'done'
    } else {
      this.#trailerChars += line.length
      if (this.#trailerChars > maxHeadBytes) throw new HttpViolation('the trailer section is too long')
    }
  }

  #readHead(text: string, bytes: number): void {
    if (text.length > maxHeadBytes) throw new HttpViolation('the header section is too long')
    const status = wholeHead.exec(text)
    if (status === null) throw new HttpViolation('the status line or a header is invalid')
    const headers = readFields(text)
    const code = Number(status[2])
    if (code < 200) {
      // This is an announcement, not the answer. The request does not allow a protocol switch.
      if (code === 101) throw new HttpViolation('the server switched protocols')
      this.#interimHeads += 1
      this.#interimBytes += bytes
      if (this.#interimHeads > maxInterimHeads || this.#interimBytes > maxInterimBytes) {
        throw new HttpViolation('there are too many interim responses')
      }
      return
    }
    const { connection, 'keep-alive': keepAlive } = headers
    this.keepAlive = status[1] === '1' && (connection === undefined || !/\bclose\b/i.test(connection))
    const peerSeconds = keepAlive === undefined ? undefined : /\btimeout=(\d{1,6})\b/i.exec(keepAlive)?.[1]
    this.peerKeepAliveMs = peerSeconds === undefined ? undefined : Number(peerSeconds) * 1000
    this.#head = undefined
    this.#step = this.#framing(code, headers)
    this.#listener.onAnswerHead(code, headers)
  }

  /** How the end of the body is determined (RFC 9112, 6.3). */
  #framing(code: number, headers: Readonly<Record<string, string>>): Step {
    const coding = headers['transfer-encoding']
    const length = headers['content-length']
    if (coding !== undefined && length !== undefined)
      throw new HttpViolation('Transfer-Encoding and Content-Length are both set')
    if (code === 204 || code === 304) return 'done'
    if (coding !== undefined) {
      if (coding.toLowerCase() !== 'chunked') throw new HttpViolation('the transfer coding is not supported')
      return 'size'
    }
    if (length === undefined) {
      this.keepAlive = false
      return 'close'
    }
    if (!/^\d{1,15}$/.test(length)) throw new HttpViolation('Content-Length is invalid')
    this.#left = Number(length)
    return this.#left === 0 ? 'done' : 'length'
  }

  #end(): void {
    this.#step = 'done'
    this.#listener.onAnswerEnd()
  }
}

/**
 * Reads the known headers of a valid head, with lowercase names. The first of a repeated name counts, unless it frames
 * the answer.
 */
function readFields(head: string): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  let end = head.indexOf(lineEnd)
  while (end >= 0) {
    const from = end + lineEnd.length
    end = head.indexOf(lineEnd, from)
    const colon = head.indexOf(':', from)
    const name = knownHeaders.get(head.slice(from, colon).toLowerCase())
    if (name === undefined) continue
    const value = head.slice(colon + 1, end < 0 ? head.length : end).trim()
    const known = headers[name]
    if (known === undefined) headers[name] = value
    else if (name === 'transfer-encoding' || (name === 'content-length' && known !== value)) {
      throw new HttpViolation('the headers that give the body length are repeated')
    }
  }
  return headers
}
