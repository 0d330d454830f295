import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Longer than any expected wait on a connection. */
const defaultLimitMs = 10_000

/** An answer, from `fetch` or from bytes. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export async function readAnswer(response: Response): Promise<Answer> {
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** A connection on which a test can write arbitrary bytes. */
export class Wire {
  readonly #socket: Socket
  #bytes = ''
  #ended = false
  #closed = false
  #changed: () => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#bytes += chunk.toString('latin1')
      this.#changed()
    })
    socket.on('drain', () => this.#changed())
    // A reset also ends the connection.
    socket.on('error', () => {})
    socket.on('end', () => {
      this.#ended = true
      this.#changed()
    })
    socket.on('close', () => {
      this.#closed = true
      this.#changed()
    })
  }

  /** Connects to an origin such as `http://127.0.0.1:8787`. Half-closed connections stay open. */
  static async open(origin: string): Promise<Wire> {
    const { hostname, port } = new URL(origin)
    const socket = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen: true })
    await once(socket, 'connect')
    return new Wire(socket)
  }

  get closed(): boolean {
    return this.#closed
  }

  /** All received bytes that `answer` has not consumed, as latin1. */
  get bytes(): string {
    return this.#bytes
  }

  /** Writes, and waits until the kernel has accepted the bytes or the connection has closed. */
  async write(bytes: string | Uint8Array): Promise<void> {
    if (this.#socket.destroyed || this.#socket.writableEnded) return
    const taken = typeof bytes === 'string' ? this.#socket.write(bytes, 'latin1') : this.#socket.write(bytes)
    if (!taken) await this.#until(() => !this.#socket.writableNeedDrain || this.#socket.destroyed, defaultLimitMs)
  }

  /** Ends the sending side. */
  finish(): void {
    this.#socket.end()
  }

  reset(): void {
    this.#socket.resetAndDestroy()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /** Stops reading. */
  pause(): void {
    this.#socket.pause()
  }

  /** The next complete answer. @throws if the connection ends first, or after `limitMs` */
  async answer(limitMs = defaultLimitMs): Promise<Answer> {
    let found: { answer: Answer; length: number } | undefined
    await this.#until(
      () => (found = takeAnswer(this.#bytes, this.#ended)) !== undefined || this.#ended || this.#closed,
      limitMs,
    )
    if (found === undefined) throw new Error(`the connection ended without an answer: ${this.#bytes.slice(0, 200)}`)
    this.#bytes = this.#bytes.slice(found.length)
    return found.answer
  }

  /** The next answer, or undefined if the connection ends without one. */
  async answerOrEnd(limitMs = defaultLimitMs): Promise<Answer | undefined> {
    await this.#until(() => takeAnswer(this.#bytes, this.#ended) !== undefined || this.#ended || this.#closed, limitMs)
    return takeAnswer(this.#bytes, true) === undefined ? undefined : this.answer(1)
  }

  /** Waits until the other side has closed the connection. */
  ended(limitMs = defaultLimitMs): Promise<void> {
    return this.#until(() => this.#ended || this.#closed, limitMs)
  }

  /** Waits until the received bytes contain this text. */
  has(text: string, limitMs = defaultLimitMs): Promise<void> {
    return this.#until(() => this.#bytes.includes(text), limitMs)
  }

  async #until(holds: () => boolean, limitMs: number): Promise<void> {
    const deadline = performance.now() + limitMs
    while (!holds()) {
      const left = deadline - performance.now()
      if (left <= 0) throw new Error(`nothing happened within ${limitMs} ms; so far: ${this.#bytes.slice(0, 200)}`)
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        this.#changed = resolve
        timer = setTimeout(resolve, left)
      })
      clearTimeout(timer)
    }
  }
}

/** The answer at the beginning of the bytes, and its length in bytes. */
function takeAnswer(bytes: string, ended: boolean): { answer: Answer; length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = bytes.slice(0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1] ?? 0)
  const headers = new Headers()
  for (const line of lines) headers.append(line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim())
  const start = end + 4
  if (headers.get('transfer-encoding') === 'chunked') {
    const last = bytes.indexOf('\r\n0\r\n\r\n', start - 2)
    if (last < 0) return undefined
    return { answer: { status, headers, text: joinChunks(bytes.slice(start, last + 7)) }, length: last + 7 }
  }
  const length = start + Number(headers.get('content-length') ?? (ended ? bytes.length - start : 0))
  if (bytes.length < length) return undefined
  const text = Buffer.from(bytes.slice(start, length), 'latin1').toString('utf8')
  return { answer: { status, headers, text }, length }
}

function joinChunks(raw: string): string {
  let body = ''
  for (let at = 0; at < raw.length;) {
    const line = raw.indexOf('\r\n', at)
    const length = Number.parseInt(raw.slice(at, line), 16)
    if (!(length > 0)) break
    body += raw.slice(line + 2, line + 2 + length)
    at = line + 2 + length + 2
  }
  return Buffer.from(body, 'latin1').toString('utf8')
}
