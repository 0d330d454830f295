import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { UpstreamError } from '../../domain/upstream.ts'
import type { UpstreamCall, UpstreamListener, UpstreamRequest } from '../../gateway/ports.ts'
import type { Clock } from '../../runtime/clock.ts'
import { uuidOf } from '../../runtime/ids.ts'
import type { Connection } from './connection.ts'
import type { Loss } from './connector.ts'
import { readHead, type UpstreamHeaders } from './head.ts'
import type { Pool, PooledCall } from './pool.ts'

/** A body up to this size is sent together with its head: copying it costs less than a second write. */
const maxCopiedBytes = 16 * 1024
/**
 * If a request is lost this soon after it was sent, the peer was closing the connection. A request lost later may have
 * been processed, and is not sent again (contract 7.10, decision 09).
 */
const replayWithinMs = 1_000

/** The parts that all of a backend's requests share, prepared once. */
export interface CallOptions {
  readonly clock: Clock
  readonly onBug: (error: unknown) => void
  /** The request line and all headers except `x-request-id` and `content-length`, each with its line end. */
  readonly head: string
}

const silent: UpstreamListener = { onHead() {}, onData() {}, onEnd() {}, onError() {} }

/**
 * One upstream call: allocates one object per call and nothing per chunk. Calls `onEnd` or `onError` of the listener
 * once and last, and nothing after `abort`.
 */
export class Call implements UpstreamCall, PooledCall {
  readonly #options: CallOptions
  readonly #pool: Pool
  readonly #request: UpstreamRequest
  #listener: UpstreamListener
  #connection: Connection | undefined
  #ended = false
  #paused = false
  /** Whether the request was sent over a connection that had been used before. */
  #reused = false
  /** Whether a byte of the answer has arrived. */
  #answering = false
  #replayed = false
  #isFlushed = false
  #sentAtMs: number | undefined

  constructor(options: CallOptions, pool: Pool, request: UpstreamRequest, listener: UpstreamListener) {
    this.#options = options
    this.#pool = pool
    this.#request = request
    this.#listener = listener
  }

  get isSent(): boolean {
    return this.#sentAtMs !== undefined
  }

  get isFlushed(): boolean {
    return this.#isFlushed
  }

  start(connection: Connection): void {
    this.#connection = connection
    connection.carry(this)
  }

  refuse(): void {
    queueMicrotask(() => this.#fail(new UpstreamError('not_sent')))
  }

  pause(): void {
    this.#paused = true
    this.#connection?.pause()
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#connection?.resume()
  }

  abort(): void {
    if (this.#ended) return
    this.#ended = true
    this.#listener = silent
    const connection = this.#connection
    this.#connection = undefined
    if (connection === undefined) this.#pool.leave(this)
    else connection.abandon()
  }

  onConnected(socket: Socket, isReused: boolean): void {
    this.#reused = isReused
    const connection = this.#connection
    const decide = (isAllowed: boolean): void => {
      // It was aborted or lost meanwhile.
      if (this.#connection !== connection) return
      if (isAllowed) return this.#send(socket)
      this.#connection = undefined
      connection?.abandon()
      this.refuse()
    }
    const may = this.#listener.mayStillSend?.() ?? true
    if (typeof may === 'boolean') decide(may)
    else void may.then(decide)
  }

  #send(socket: Socket): void {
    this.#sentAtMs = this.#options.clock.monotonicMs()
    const { body, requestId, headers } = this.#request
    const own = headers === undefined ? '' : linesOf(headers)
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    const head = `${this.#options.head}${own}x-request-id: ${uuidOf(requestId)}\r\ncontent-length: ${length}\r\n\r\n`
    if (typeof body === 'string') socket.write(head + body)
    else if (length <= maxCopiedBytes) {
      const bytes = Buffer.allocUnsafe(head.length + length)
      bytes.write(head, 'latin1')
      bytes.set(body, head.length)
      socket.write(bytes)
    } else {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      socket.uncork()
    }
    if (this.#paused) socket.pause()
  }

  onAnswering(): void {
    this.#answering = true
  }

  onAnswerHead(status: number, headers: UpstreamHeaders): void {
    this.#listener.onHead(readHead(status, headers, () => this.#options.clock.nowMs()))
  }

  onAnswerData(chunk: Buffer): void {
    this.#listener.onData(chunk)
  }

  onAnswerEnd(isFlushed: boolean): void {
    this.#connection = undefined
    this.#isFlushed = isFlushed
    if (this.#ended) return
    this.#ended = true
    this.#listener.onEnd()
  }

  onLost(loss: Loss): void {
    this.#connection = undefined
    if (this.#ended) return
    if (loss === 'reset' && this.#reused && !this.#answering && !this.#replayed && this.#isJustSent()) {
      this.#replayed = true
      this.#reused = false
      this.#pool.takeFresh(this)
    } else {
      this.#fail(new UpstreamError(this.#sentAtMs === undefined && loss === 'reset' ? 'unreachable' : loss))
    }
  }

  #isJustSent(): boolean {
    return this.#sentAtMs === undefined || this.#options.clock.monotonicMs() - this.#sentAtMs <= replayWithinMs
  }

  #fail(failure: UpstreamError): void {
    if (this.#ended) return
    this.#ended = true
    const listener = this.#listener
    this.#listener = silent
    try {
      listener.onError(failure)
    } catch (error) {
      this.#options.onBug(error)
    }
  }
}

/** Converts alternating names and values to lines. Their content was validated where they entered. */
function linesOf(headers: readonly string[]): string {
  let lines = ''
  for (let index = 0; index + 1 < headers.length; index += 2) lines += `${headers[index]}: ${headers[index + 1]}\r\n`
  return lines
}
