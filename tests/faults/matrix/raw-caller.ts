import { connect, type Socket } from 'node:net'

/** An HTTP answer as it was received. */
export interface RawResponse {
  readonly status: number
  readonly body: string
}

/** A client that controls every byte and the two directions of its connection. */
export class RawCaller {
  readonly #socket: Socket
  received = ''
  #changed: () => void = () => {}
  isClosed = false

  constructor(port: number) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    this.#socket.on('data', (bytes: Buffer) => {
      this.received += bytes.toString('latin1')
      this.#changed()
    })
    this.#socket.on('error', () => {})
    for (const event of ['end', 'close'])
      this.#socket.on(event, () => {
        this.isClosed = true
        this.#changed()
      })
  }

  send(text: string): void {
    this.#socket.write(text)
  }

  /** Waits until that is so, or the service closes the connection. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo() && !this.isClosed) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve
      })
    }
  }

  endSending(): void {
    this.#socket.end()
  }

  /** Stops reading, so that the kernel's buffers fill. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  close(how: 'fin' | 'rst'): void {
    if (how === 'fin') this.#socket.destroy()
    else this.#socket.resetAndDestroy()
  }
}

/** The complete answers at the beginning of what was received, without interim ones such as `100 Continue`. */
export function responsesIn(received: string): RawResponse[] {
  const responses: RawResponse[] = []
  for (let left = received; left !== '';) {
    const headEnd = left.indexOf('\r\n\r\n')
    if (headEnd < 0) break
    const head = left.slice(0, headEnd).toLowerCase()
    const status = Number(head.split(' ', 2)[1])
    left = left.slice(headEnd + 4)
    if (status < 200) continue
    const isChunked = head.includes('transfer-encoding: chunked')
    const read = isChunked ? readChunks(left) : readLength(left, Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0))
    if (read === undefined) break
    responses.push({ status, body: Buffer.from(read.body, 'latin1').toString('utf8') })
    left = left.slice(read.end)
  }
  return responses
}

function readLength(text: string, length: number): { body: string; end: number } | undefined {
  return text.length < length ? undefined : { body: text.slice(0, length), end: length }
}

function readChunks(text: string): { body: string; end: number } | undefined {
  let body = ''
  for (let at = 0; ;) {
    const line = text.indexOf('\r\n', at)
    if (line < 0) return undefined
    const length = Number.parseInt(text.slice(at, line), 16)
    const end = line + 2 + length + 2
    if (text.length < end) return undefined
    if (length === 0) return { body, end }
    body += text.slice(line + 2, end - 2)
    at = end
  }
}
