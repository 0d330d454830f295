import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { parseObject } from '../../../src/domain/json.ts'
import { formatAnswersAt } from '../../../src/simulation/providers/format-answers.ts'
import { withPath } from '../../../src/simulation/providers/gemini.ts'
import { secretText, type Act, type Part } from './upstream-faults.ts'

/** What the place of a backend does with its requests; undefined for a healthy one. */
export type ActsOf = (place: number, stream: boolean) => readonly Act[] | undefined

/** Time for written bytes to be read: a reset overtakes those that are not. */
const flushMs = 20
/** What a healthy backend does. */
export function healthyActs(stream: boolean): readonly Act[] {
  if (!stream) return [{ send: 'head' }, { send: 'half' }, { send: 'rest' }]
  const parts = ['head', 'opening', 'content', 'more', 'terminal'] as const
  return [...parts.map((part) => ({ send: part })), { close: 'end' }]
}

/** The text of a healthy answer of the backend at that place. */
export const textOf = (place: number): string => `alpha bravo charlie delta of p${place}`

/**
 * The backends of one cell on one port: `/p0/v1`, `/p1/v1`, and so on, in every provider format. Written on bare
 * sockets, because a framework cannot break its own framing.
 */
export class FaultyBackends {
  readonly #server: Server
  readonly #acts: ActsOf
  readonly #sockets = new Set<Socket>()
  /** Connections with a request that has not been answered completely. */
  readonly #busy = new Set<Socket>()
  readonly #closed = new AbortController()
  readonly #released = Promise.withResolvers<void>()
  /** Requests by place. */
  readonly calls: number[] = []

  private constructor(acts: ActsOf) {
    this.#acts = acts
    this.#server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => this.#serve(socket))
  }

  static async start(acts: ActsOf): Promise<FaultyBackends> {
    const backends = new FaultyBackends(acts)
    await new Promise<void>((resolve) => backends.#server.listen(0, '127.0.0.1', resolve))
    return backends
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Lets the answers continue that wait for it. */
  release(): void {
    this.#released.resolve()
  }

  /** Calls that were neither answered completely nor aborted. */
  get unfinished(): number {
    return this.#busy.size
  }

  async close(): Promise<void> {
    this.#closed.abort()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket
      .on('error', () => {})
      .on('close', () => {
        this.#sockets.delete(socket)
        this.#busy.delete(socket)
      })
    socket.on('end', () => socket.end())
    let received = ''
    let served = 0
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text
      // The first byte of a TLS handshake.
      if (received.startsWith('\x16')) return void socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n')
      const request = readRequest(received)
      if (request === undefined) return
      received = ''
      const isReused = (served += 1) > 1
      this.#answer(socket, request, isReused).catch(() => void socket.destroy())
    })
  }

  async #answer(socket: Socket, { path, text }: UpstreamRequest, isReused: boolean): Promise<void> {
    const [, placeText = '0', rest = path] = /^\/p(\d+)(\/.*)$/.exec(path) ?? []
    const place = Number(placeText)
    this.calls[place] = (this.calls[place] ?? 0) + 1
    this.#busy.add(socket)
    const answer = readAnswer(rest, text, place)
    const acts = this.#acts(place, answer.stream) ?? healthyActs(answer.stream)
    for (const act of acts) {
      if ('resetIfReused' in act) {
        if (!isReused) continue
        socket.resetAndDestroy()
        return
      }
      await this.#act(socket, act, answer)
    }
    if (isComplete(acts.at(-1))) this.#busy.delete(socket)
  }

  async #act(socket: Socket, act: Act, answer: Answer): Promise<void> {
    if ('waitMs' in act) await this.#wait(act.waitMs)
    else if ('flush' in act) await this.#wait(flushMs)
    else if ('released' in act) await this.#released.promise
    else if ('close' in act && act.close !== 'end') {
      await this.#wait(flushMs)
      if (act.close === 'fin') socket.end()
      else socket.resetAndDestroy()
    } else socket.write(bytesOf(act, answer))
  }

  /** Waits, and then until the service, which reads in this process, has read what was sent before. */
  async #wait(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#closed.signal })
    await nextTurn()
    await nextTurn()
  }
}

/** The bytes that an act sends; none if the answer has no such part. */
function bytesOf(act: Act, answer: Answer): Buffer {
  if ('together' in act) return Buffer.concat(act.together.map((one) => bytesOf(one, answer)))
  if ('bytes' in act) return Buffer.from(act.bytes, 'latin1')
  if ('raw' in act) return chunk(Buffer.from(act.raw, 'latin1'))
  if ('status' in act) return Buffer.from(rejection(act))
  if ('close' in act) return Buffer.from('0\r\n\r\n')
  if (!('send' in act)) throw new TypeError('This act sends nothing.')
  const part = Buffer.from(answer.parts[act.send])
  // An empty chunk would end the body.
  return answer.stream && act.send !== 'head' && part.length > 0 ? chunk(part) : part
}

/** Whether an answer that ends with this act is complete. */
function isComplete(last: Act | undefined): boolean {
  if (last === undefined) return false
  return 'status' in last || 'close' in last || ('send' in last && last.send === 'rest')
}

interface UpstreamRequest {
  readonly path: string
  readonly text: string
}

interface Answer {
  readonly stream: boolean
  readonly parts: Readonly<Record<Part, string>>
}

/** The parts of a healthy answer to that request. */
function readAnswer(path: string, text: string, place: number): Answer {
  const url = path.split('?')[0]!
  const format = formatAnswersAt(url)
  const body = parseObject(text)
  if (format === undefined || body === undefined) throw new TypeError(`No provider answers at ${url}.`)
  const stamp = { id: `sim${place}`, createdAt: Math.floor(Date.now() / 1000) }
  const step = { do: 'answer', text: textOf(place) } as const
  const answers = format.answers('matrix', withPath(body, path), step, stamp)
  const head = (type: string, framing: string): string =>
    `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\nx-request-id: upstream-${place}\r\n${framing}\r\n\r\n`
  if (!answers.stream) {
    const whole = JSON.stringify(answers.whole())
    const middle = whole.indexOf('charlie')
    const none = { opening: '', content: '', more: '', terminal: '' }
    const parts = { half: whole.slice(0, middle), rest: whole.slice(middle), ...none }
    return { stream: false, parts: { head: head('application/json', `content-length: ${whole.length}`), ...parts } }
  }
  const frames = [...answers.frames()]
  const first = frames.findIndex((frame) => frame.includes('alpha'))
  const second = frames.findIndex((frame) => frame.includes('bravo'))
  const last = frames.findLastIndex((frame) => terminal.test(frame))
  const between = (from: number, to: number): string => frames.slice(from, to).join('')
  return {
    stream: true,
    parts: {
      head: head('text/event-stream', 'transfer-encoding: chunked'),
      opening: between(0, first),
      content: between(first, second + 1),
      more: between(second + 1, last),
      terminal: between(last, frames.length),
      half: '',
      rest: '',
    },
  }
}

/** The event that completes an answer, in each provider format. */
const terminal = /"finish_reason":"|"type":"response\.completed"|"type":"message_stop"|"finishReason":"/

function rejection({ status, headers = {}, code }: Extract<Act, { status: number }>): string {
  const error = { type: 'provider_error', message: secretText, ...(code !== undefined && { code }) }
  const body = JSON.stringify({ type: 'error', error })
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${dated(value)}\r\n`)
  return `HTTP/1.1 ${status} Fault\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${lines.join('')}\r\n${body}`
}

function dated(value: string): string {
  const seconds = /^DATE([+-].*)$/.exec(value)?.[1]?.replace('+-', '-')
  return seconds === undefined ? value : new Date(Date.now() + Number(seconds) * 1000).toUTCString()
}

function chunk(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}

/** The request, once all of it has arrived. */
function readRequest(received: string): UpstreamRequest | undefined {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(received.slice(0, headEnd))?.[1] ?? 0)
  if (received.length < headEnd + 4 + length) return undefined
  const text = Buffer.from(received.slice(headEnd + 4, headEnd + 4 + length), 'latin1').toString('utf8')
  return { path: received.split(' ', 2)[1]!, text }
}
