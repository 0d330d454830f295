import { connect } from 'node:net'
import type { Socket } from 'node:net'

/** One answer: its status, and the bytes of its body as received, including chunk framing. */
export interface WireAnswer {
  readonly status: number
  readonly bodyBytes: number
}

/**
 * Receives everything that happens on a connection. `onClosed` is the last call; `error` is absent if the peer closed
 * it.
 */
export interface ConnectionListener {
  onOpen(connection: ClientConnection): void
  onAnswer(connection: ClientConnection, answer: WireAnswer): void
  onClosed(connection: ClientConnection, error: string | undefined): void
}

const readBufferBytes = 128 * 1024
const maxHeadBytes = 16 * 1024
const headEnd = Buffer.from('\r\n\r\n')
const chunkedEnd = Buffer.from('\r\n0\r\n\r\n')

// One buffer for all sockets: each read is processed before the next one.
const readBuffer = Buffer.allocUnsafe(readBufferBytes)

/** A keep-alive HTTP/1.1 client connection with only enough HTTP to find the end of an answer. */
export class ClientConnection {
  readonly #socket: Socket
  readonly #listener: ConnectionListener
  readonly #tail = Buffer.alloc(chunkedEnd.length)
  #head: Buffer | undefined
  #isAnswering = false
  #isChunked = false
  #missingBytes = 0
  #bodyBytes = 0
  #status = 0
  #error: string | undefined
  #sentAtUs = 0

  constructor(port: number, listener: ConnectionListener) {
    this.#listener = listener
    this.#socket = connect({
      host: '127.0.0.1',
      port,
      noDelay: true,
      onread: {
        buffer: readBuffer,
        callback: (length) => {
          this.#read(readBuffer.subarray(0, length))
          return true
        },
      },
    })
    this.#socket.on('connect', () => listener.onOpen(this))
    this.#socket.on('error', (error: NodeJS.ErrnoException) => (this.#error = error.code ?? 'socket error'))
    this.#socket.on('close', () => listener.onClosed(this, this.#error))
  }

  get isAwaiting(): boolean {
    return this.#sentAtUs > 0
  }

  /** When the current request was sent, in microseconds of the process's clock. */
  get sentAtUs(): number {
    return this.#sentAtUs
  }

  send(request: Buffer): void {
    this.#sentAtUs = performance.now() * 1000
    this.#socket.write(request)
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #read(bytes: Buffer): void {
    if (this.#isAnswering) this.#readBody(bytes)
    else this.#readHead(bytes)
  }

  #readHead(bytes: Buffer): void {
    const all = this.#head === undefined ? bytes : Buffer.concat([this.#head, bytes])
    const end = all.indexOf(headEnd)
    if (end < 0) {
      this.#head = Buffer.from(all)
      if (all.length > maxHeadBytes) this.#fail('endless head')
      return
    }
    this.#head = undefined
    const head = all.toString('latin1', 0, end)
    this.#status = Number(head.slice(9, 12))
    const declared = /\r\ncontent-length: *(\d+)/i.exec(head)
    this.#isChunked = declared === null
    if (this.#isChunked && !/\r\ntransfer-encoding: *chunked/i.test(head)) return this.#fail('no length')
    this.#missingBytes = declared === null ? 0 : Number(declared[1])
    this.#bodyBytes = 0
    this.#isAnswering = true
    // The line break that ends the headers also precedes the first chunk.
    if (this.#isChunked) this.#readBody(all.subarray(end + 2))
    else this.#readBody(all.subarray(end + headEnd.length))
  }

  #readBody(bytes: Buffer): void {
    this.#bodyBytes += bytes.length
    if (this.#isChunked) {
      this.#keepTail(bytes)
      if (this.#tail.equals(chunkedEnd)) this.#finish()
      return
    }
    this.#missingBytes -= bytes.length
    if (this.#missingBytes === 0) this.#finish()
    else if (this.#missingBytes < 0) this.#fail('more bytes than announced')
  }

  // The last seven bytes show whether a chunked answer is complete: an event stream never contains them.
  #keepTail(bytes: Buffer): void {
    const size = this.#tail.length
    if (bytes.length >= size) {
      bytes.copy(this.#tail, 0, bytes.length - size)
      return
    }
    this.#tail.copyWithin(0, bytes.length)
    bytes.copy(this.#tail, size - bytes.length)
  }

  #finish(): void {
    this.#isAnswering = false
    this.#tail.fill(0)
    const answer = { status: this.#status, bodyBytes: this.#bodyBytes }
    this.#listener.onAnswer(this, answer)
  }

  /** Marks the last answer as processed. */
  rest(): void {
    this.#sentAtUs = 0
  }

  #fail(reason: string): void {
    this.#error = reason
    this.#socket.destroy()
  }
}
