import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { WebSocket, type ClientOptions } from 'ws'
import type { Answer } from './wire.ts'

/** Longer than any expected wait on a connection. */
const defaultLimitMs = 10_000

/** The service to connect to, and the key. */
interface Target {
  /** Such as `http://127.0.0.1:8787`. */
  readonly origin: string
  readonly key: string
}

/** The parts of a service message that tests use. */
export interface SocketEvent {
  readonly type: string
  readonly status?: number
  readonly error?: { readonly code: string; readonly message: string; readonly [name: string]: unknown }
  readonly headers?: Readonly<Record<string, string>>
  readonly stream_id?: string
  readonly sequence_number?: number
  readonly delta?: string
  readonly response?: SocketResponse
}

interface SocketResponse {
  readonly id: string
  readonly status: string
  readonly model: string
  readonly store: boolean
  readonly previous_response_id: string | null
  readonly output: readonly { readonly type: string; readonly [name: string]: unknown }[]
  readonly usage: { readonly total_tokens: number } | null
}

/** The events of one turn, and their result. */
export interface Turn {
  readonly events: readonly SocketEvent[]
  readonly last: SocketEvent
  readonly text: string
}

export interface Asked {
  readonly key?: string | undefined
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
}

const endings = ['response.completed', 'response.incomplete', 'response.failed']

/** A client for the WebSocket mode of Responses, with the most common JavaScript library. */
export class SocketClient {
  readonly socket: WebSocket
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  /** The headers of the answer to the upgrade. */
  readonly headers: Headers
  readonly #events: SocketEvent[] = []
  #changed: () => void = () => {}

  private constructor(socket: WebSocket, response: IncomingMessage) {
    this.socket = socket
    this.headers = headersOf(response)
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => {
        resolve({ code, reason: reason.toString() })
        this.#changed()
      })
    })
    socket.on('error', () => {})
    socket.on('message', (data: Buffer) => {
      this.#events.push(JSON.parse(data.toString('utf8')) as SocketEvent)
      this.#changed()
    })
  }

  /** Connects, by default with the key of the test service. @throws Error if the upgrade is rejected */
  static async open(of: Target, asked: Asked = {}, options: ClientOptions = {}): Promise<SocketClient> {
    const socket = connect(of, asked, options)
    const upgraded = once(socket, 'upgrade')
    await once(socket, 'open')
    const [response] = (await upgraded) as [IncomingMessage]
    return new SocketClient(socket, response)
  }

  /** Received messages that no test has read yet. */
  get waiting(): readonly SocketEvent[] {
    return this.#events
  }

  send(message: unknown): void {
    this.socket.send(typeof message === 'string' || Buffer.isBuffer(message) ? message : JSON.stringify(message))
  }

  create(body: object = {}): void {
    this.send({ type: 'response.create', model: 'svc-router/frontier', input: 'Say hello.', ...body })
  }

  /** Sends a message and reads the whole answer. */
  turn(body: object = {}): Promise<Turn> {
    this.create(body)
    return this.read()
  }

  /** The next message. */
  async next(limitMs = defaultLimitMs): Promise<SocketEvent> {
    const deadline = performance.now() + limitMs
    for (;;) {
      const event = this.#events.shift()
      if (event !== undefined) return event
      const leftMs = deadline - performance.now()
      if (leftMs <= 0) throw new Error('no message came in time')
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error('the connection is closed')
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs)
        this.#changed = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  /** Reads the next answer until its terminal event, or the error that replaces it. */
  async read(limitMs = defaultLimitMs): Promise<Turn> {
    const events: SocketEvent[] = []
    for (;;) {
      const event = await this.next(limitMs)
      events.push(event)
      // A terminal event follows an error within an answer. Only an error that replaces the answer has a status.
      const isEnd = endings.includes(event.type) || (event.type === 'error' && event.status !== undefined)
      if (isEnd) return { events, last: event, text: events.map(({ delta }) => delta ?? '').join('') }
    }
  }

  async close(): Promise<void> {
    this.socket.close()
    await this.closed
  }
}

/** The answer to a rejected upgrade. @throws Error if the upgrade succeeds */
export async function refusedUpgrade(of: Target, asked: Asked = {}): Promise<Answer> {
  const socket = connect(of, asked, {})
  socket.on('error', () => {})
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    socket.on('unexpected-response', (_request, given) => resolve(given))
    socket.on('open', () => reject(new Error('the upgrade was not refused')))
  })
  return { status: response.statusCode ?? 0, headers: headersOf(response), text: await readText(response) }
}

function connect(of: Target, asked: Asked, options: ClientOptions): WebSocket {
  const { path = '/v1/responses', headers } = asked
  const key = 'key' in asked ? asked.key : of.key
  return new WebSocket(`${of.origin.replace('http', 'ws')}${path}`, {
    headers: { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...headers },
    ...options,
  })
}

function headersOf({ headers }: IncomingMessage): Headers {
  return new Headers(
    Object.entries(headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )
}
