import { connect, type Socket } from 'node:net'

const connectionLimitMs = 30_000

/** An answer as received, possibly incomplete. */
export interface RawAnswer {
  /** 0 if no head arrived. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The body without chunk framing, as latin1. */
  readonly body: string
  /** Whether it was complete before the connection ended. */
  readonly complete: boolean
}

/** A connection that reads every byte the kernel has received, even if the other side dies. */
export class RawConnection {
  readonly #socket: Socket
  #bytes = ''
  #closed = false
  #changed: () => void = () => {}

  /** `localAddress` is one of this machine's, such as `127.0.1.1`. */
  constructor(port: number, localAddress?: string) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, ...(localAddress && { localAddress }) })
    this.#socket.setTimeout(connectionLimitMs, () => this.#socket.destroy())
    this.#socket.on('data', (chunk: Buffer) => {
      this.#bytes += chunk.toString('latin1')
      this.#changed()
    })
    // A reset ends the read like a close.
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => {
      this.#closed = true
      this.#changed()
    })
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Sends one request and reads its answer until its end or the end of the connection. */
  async ask(request: string): Promise<RawAnswer> {
    this.#socket.write(request)
    for (;;) {
      const answer = readAnswer(this.#bytes, this.#closed)
      if (answer !== undefined) {
        this.#bytes = ''
        return answer
      }
      await new Promise<void>((resolve) => {
        this.#changed = resolve
      })
    }
  }

  /** Sends bytes and reads whatever comes until the connection ends. */
  async read(request: string): Promise<string> {
    this.#socket.write(request)
    while (!this.#closed) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve
      })
    }
    return this.#bytes
  }

  /** Closes the connection abruptly. */
  leave(): void {
    this.#socket.destroy()
  }
}

/** A POST of JSON as HTTP/1.1 bytes. */
export function writePost(path: string, key: string, body: unknown, headers = ''): string {
  const text = JSON.stringify(body)
  return (
    `POST /v1${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: svc-router-tests/1.0\r\nauthorization: Bearer ${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n${headers}\r\n${text}`
  )
}

/** The answer at the beginning of the bytes; undefined if more bytes are needed. */
function readAnswer(bytes: string, closed: boolean): RawAnswer | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return closed ? { status: 0, headers: {}, body: '', complete: false } : undefined
  const [first = '', ...lines] = bytes.slice(0, end).split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  const status = Number(first.split(' ')[1])
  const raw = bytes.slice(end + 4)
  const chunked = headers['transfer-encoding'] === 'chunked'
  const complete = chunked ? raw.endsWith('\r\n0\r\n\r\n') : raw.length >= Number(headers['content-length'] ?? 0)
  if (!complete && !closed) return undefined
  return { status, headers, body: chunked ? joinChunks(raw) : raw, complete }
}

function joinChunks(raw: string): string {
  let body = ''
  for (let at = 0; at < raw.length;) {
    const line = raw.indexOf('\r\n', at)
    if (line < 0) break
    const length = Number.parseInt(raw.slice(at, line), 16)
    if (!(length > 0)) break
    body += raw.slice(line + 2, line + 2 + length)
    at = line + 2 + length + 2
  }
  return body
}

/** Whether the text contains at least one byte of an answer, not only errors, comments, or keep-alives. */
export function holdsAnswer({ status, headers, body }: RawAnswer): boolean {
  if (status !== 200 || body === '') return false
  if (!headers['content-type']?.startsWith('text/event-stream')) return true
  return body.split('\n\n').some((block) => {
    if (block === '' || block.startsWith(':')) return false
    return !/^data: \{"error"|^data: \[DONE\]|^event: (?:error|response\.(?:created|in_progress|failed))\n/.test(block)
  })
}
