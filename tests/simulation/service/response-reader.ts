import { Buffer } from 'node:buffer'

/** One response as it arrives: head, then body, without its framing. */
export class ResponseReader {
  status: number | undefined
  headers: ReadonlyMap<string, string> = new Map()
  body = ''
  /** Whether the framing says that the response is whole. */
  isWhole = false
  #rest: Buffer = Buffer.alloc(0)
  #left = 0
  #isChunked = false

  /** @throws Error if the bytes are not one response */
  push(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    while (this.status === undefined) if (!this.#readHead()) return
    if (this.#isChunked) this.#readChunks()
    else this.#readLength()
    if (this.isWhole && this.#rest.length > 0)
      throw new Error(`bytes after the response: ${this.#rest.toString('utf8')}`)
  }

  /** False until the head of the final response is there. */
  #readHead(): boolean {
    const end = this.#rest.indexOf('\r\n\r\n')
    if (end < 0) return false
    const [first = '', ...lines] = this.#rest.toString('latin1', 0, end).split('\r\n')
    this.#rest = this.#rest.subarray(end + 4)
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1])
    if (status === 100) return this.#readHead()
    this.status = status
    const headers = new Map<string, string>()
    for (const line of lines) {
      const name = line.slice(0, line.indexOf(':')).toLowerCase()
      if (headers.has(name)) throw new Error(`the header ${name} is repeated`)
      headers.set(name, line.slice(line.indexOf(':') + 2))
    }
    this.headers = headers
    this.#isChunked = headers.get('transfer-encoding') === 'chunked'
    this.#left = Number(headers.get('content-length') ?? 0)
    return true
  }

  #readLength(): void {
    const part = this.#rest.subarray(0, this.#left)
    this.body += part.toString('utf8')
    this.#rest = this.#rest.subarray(part.length)
    this.#left -= part.length
    this.isWhole = this.#left === 0
  }

  #readChunks(): void {
    while (!this.isWhole) {
      const lineEnd = this.#rest.indexOf('\r\n')
      if (lineEnd < 0) return
      const size = Number.parseInt(this.#rest.toString('latin1', 0, lineEnd), 16)
      if (this.#rest.length < lineEnd + 2 + size + 2) return
      this.body += this.#rest.toString('utf8', lineEnd + 2, lineEnd + 2 + size)
      this.#rest = this.#rest.subarray(lineEnd + 2 + size + 2)
      if (size === 0) this.isWhole = true
    }
  }
}
