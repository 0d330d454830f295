import type { Duplex } from 'node:stream'
import { deserialize, serialize } from 'node:v8'

const headerBytes = 4
/** Maximum number of messages in one frame. */
const maxBatch = 128
/** How the first byte of V8's format differs from that of JSON. */
const v8Mark = 0xff

export interface FrameListener {
  /** @throws anything if the message is not valid, which breaks the connection */
  onMessage(message: unknown): void
  /** The connection cannot be used anymore. `cause` is the error of an invalid message. Called at most once. */
  onBroken(reason: BrokenReason, cause?: unknown): void
}

/** The other side closed the connection, sent something invalid or too large, or does not read. */
export type BrokenReason = 'closed' | 'invalid' | 'too_large' | 'slow_reader'

/** A message that is larger than a frame may be. */
export class MessageTooLarge extends Error {
  override readonly name = 'MessageTooLarge'
}

/**
 * Sends messages over a stream of bytes, each frame as its length and its content. Those of one turn of the event loop
 * share a frame and a system call. Frames and what waits to be read by the other side are bounded.
 */
export class FramedSocket {
  readonly #socket: Duplex
  readonly #listener: FrameListener
  readonly #maxFrameBytes: number
  #batch: object[] = []
  #isFlushDue = false
  #isOver = false
  #received: Buffer[] = []
  #receivedBytes = 0
  /** The length of the frame that is arriving, with its header; 0 if unknown. */
  #frameBytes = 0

  constructor(socket: Duplex, maxFrameBytes: number, listener: FrameListener) {
    this.#socket = socket
    this.#maxFrameBytes = maxFrameBytes
    this.#listener = listener
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', () => this.#break('closed'))
    socket.on('close', () => this.#break('closed'))
    socket.on('end', () => this.#break('closed'))
  }

  /** Whether the other side reads so slowly that nothing more should be sent. */
  get isFull(): boolean {
    return this.#socket.writableLength > this.#maxFrameBytes
  }

  /** Sends a small message of plain JSON at the end of this turn of the event loop. */
  send(message: object): void {
    this.add(message)
    if (this.#isFlushDue || this.#batch.length === 0) return
    this.#isFlushDue = true
    setImmediate(() => {
      this.#isFlushDue = false
      this.flush()
    })
  }

  /** Adds a small message of plain JSON to the next frame, whenever that is sent. */
  add(message: object): void {
    if (this.#isOver) return
    this.#batch.push(message)
    if (this.#batch.length >= maxBatch) this.flush()
  }

  /** Sends what waits. */
  flush(): void {
    if (this.#batch.length === 0) return
    const batch = this.#batch
    this.#batch = []
    this.#write(JSON.stringify(batch))
  }

  /** Sends a message of any size with any values that structured clones have. @throws MessageTooLarge */
  sendValue(message: object): void {
    if (this.#isOver) return
    const content = serialize(message)
    if (content.length > this.#maxFrameBytes) throw new MessageTooLarge('the message is too large')
    this.flush()
    this.#write(content)
  }

  /** Sends what waits and closes the connection. The listener is not called anymore. */
  end(): void {
    this.flush()
    this.#isOver = true
    this.#socket.end()
  }

  destroy(): void {
    this.#isOver = true
    this.#socket.destroy()
  }

  #write(content: string | Buffer): void {
    if (this.#isOver) return
    const bytes = Buffer.byteLength(content)
    const frame = Buffer.allocUnsafe(headerBytes + bytes)
    frame.writeUInt32BE(bytes)
    if (typeof content === 'string') frame.write(content, headerBytes)
    else content.copy(frame, headerBytes)
    this.#socket.write(frame)
    if (this.#socket.writableLength > 2 * this.#maxFrameBytes) this.#break('slow_reader')
  }

  #receive(chunk: Buffer): void {
    this.#received.push(chunk)
    this.#receivedBytes += chunk.length
    while (!this.#isOver && this.#receivedBytes >= Math.max(headerBytes, this.#frameBytes)) {
      const all = this.#received.length === 1 ? this.#received[0]! : Buffer.concat(this.#received, this.#receivedBytes)
      this.#frameBytes = headerBytes + all.readUInt32BE()
      if (this.#frameBytes - headerBytes > this.#maxFrameBytes) return this.#break('too_large')
      this.#received = [all]
      if (all.length < this.#frameBytes) return
      const content = all.subarray(headerBytes, this.#frameBytes)
      this.#received = all.length === this.#frameBytes ? [] : [all.subarray(this.#frameBytes)]
      this.#receivedBytes -= this.#frameBytes
      this.#frameBytes = 0
      this.#read(content)
    }
  }

  #read(content: Buffer): void {
    try {
      if (content[0] === v8Mark) return this.#listener.onMessage(deserialize(content))
      const batch: unknown = JSON.parse(content.toString())
      if (!Array.isArray(batch)) throw new TypeError('not a batch')
      for (const message of batch) this.#listener.onMessage(message)
    } catch (error) {
      this.#break('invalid', error)
    }
  }

  #break(reason: BrokenReason, cause?: unknown): void {
    if (this.#isOver) return
    this.destroy()
    this.#listener.onBroken(reason, cause)
  }
}
