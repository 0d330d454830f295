import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** The behavior of a model of the faulty provider. */
export type Fault =
  | 'none'
  | 'rate-limited-once'
  | 'rate-limited'
  | 'error-once'
  | 'overloaded'
  | 'reset-once'
  | 'silent'
  | 'slow-first-token'
  | 'cut'
  | 'stall'
  | 'malformed-event'
  | 'no-done'
  | 'context-too-long'
  | 'content-filter'
  | 'flapping'
  | 'no-prefill'

/** The duration of the faults in milliseconds. */
export interface FaultTimes {
  readonly retryAfterMs: number
  readonly firstTokenMs: number
  readonly stallMs: number
  readonly silentMs: number
  readonly downMs: number
  readonly betweenTokensMs: number
}

/** One request that reached the provider. */
export interface SeenAttempt {
  readonly model: string
  /** Milliseconds since the last reset. */
  readonly atMs: number
  /** Whether the answer was that of a healthy provider. */
  readonly healthy: boolean
  /** Whether it was rejected because its last message was from the assistant. */
  readonly prefillRefused: boolean
}

const wordCount = 60
/** The answer of every healthy completion. */
export const wholeText = Array.from({ length: wordCount }, (_, index) => `word${index + 1}`).join(' ')
const cutAfter = 40
const stallAfter = 20
const malformedAt = 10
const usage = { prompt_tokens: 12, completion_tokens: wordCount, total_tokens: 12 + wordCount }

/**
 * A chat provider that breaks on purpose; the model's name says how. Written on bare sockets, because a framework
 * cannot reset a connection before the headers or end a chunked body without its last chunk.
 */
export class FaultyProvider {
  readonly seen: SeenAttempt[] = []
  readonly #server: Server
  readonly #faults: Readonly<Record<string, Fault>>
  readonly times: FaultTimes
  readonly #sockets = new Set<Socket>()
  readonly #closed = new AbortController()
  #startedMs = performance.now()

  private constructor(faults: Readonly<Record<string, Fault>>, times: FaultTimes) {
    this.#faults = faults
    this.times = times
    this.#server = createServer((socket) => this.#serve(socket))
  }

  static async start(faults: Readonly<Record<string, Fault>>, times: FaultTimes): Promise<FaultyProvider> {
    const provider = new FaultyProvider(faults, times)
    await new Promise<void>((resolve) => provider.#server.listen(0, '127.0.0.1', resolve))
    return provider
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  /** Milliseconds since the last reset. */
  get nowMs(): number {
    return performance.now() - this.#startedMs
  }

  reset(): void {
    this.seen.length = 0
    this.#startedMs = performance.now()
  }

  async close(): Promise<void> {
    this.#closed.abort()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket)).on('error', () => {})
    let received = ''
    let answering: Promise<void> = Promise.resolve()
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text
      for (;;) {
        const body = takeBody(received)
        if (body === undefined) return
        received = received.slice(body.end)
        answering = answering.then(() => this.#answer(socket, body.text)).catch(() => void socket.destroy())
      }
    })
  }

  async #answer(socket: Socket, text: string): Promise<void> {
    const body = JSON.parse(text) as { model: string; messages: readonly { role: string }[] }
    const { model } = body
    const fault = this.#faults[model] ?? 'none'
    const isFirst = !this.seen.some((attempt) => attempt.model === model)
    const isDown = fault === 'flapping' && this.nowMs < this.times.downMs
    const prefillRefused = fault === 'no-prefill' && body.messages.at(-1)?.role === 'assistant'
    const refusal = isDown ? refusals.overloaded : prefillRefused ? prefill : this.#refusalFor(fault, isFirst)
    const resets = fault === 'reset-once' && isFirst
    const healthy = refusal === undefined && !resets && fault !== 'silent'
    this.seen.push({ model, atMs: this.nowMs, healthy, prefillRefused })
    if (resets) {
      socket.resetAndDestroy()
      return
    }
    if (refusal !== undefined) return void socket.write(refusal)
    if (fault === 'silent') {
      await this.#wait(this.times.silentMs)
      return void socket.destroy()
    }
    await this.#stream(socket, model, fault)
  }

  #refusalFor(fault: Fault, isFirst: boolean): string | undefined {
    if (fault === 'rate-limited-once' && isFirst)
      return refuse(429, 'rate_limit_error', 'rate_limit_exceeded', [`Retry-After: ${this.times.retryAfterMs / 1000}`])
    if (fault === 'error-once') return isFirst ? refuse(500, 'server_error', null) : undefined
    return refusals[fault]
  }

  async #stream(socket: Socket, model: string, fault: Fault): Promise<void> {
    const send = (data: string): void => {
      const event = `data: ${data}\n\n`
      socket.write(`${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`)
    }
    const chunk = (choices: readonly object[], extra: object = {}): string =>
      JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model, choices, ...extra })
    const say = (delta: object, finish: string | null = null): void =>
      send(chunk([{ index: 0, delta, finish_reason: finish }]))

    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n')
    if (fault === 'slow-first-token') await this.#wait(this.times.firstTokenMs)
    say({ role: 'assistant', content: '' })
    for (const [index, word] of wholeText.split(' ').entries()) {
      if (fault === 'cut' && index === cutAfter) return void socket.destroy()
      if (fault === 'stall' && index === stallAfter) {
        await this.#wait(this.times.stallMs)
        return void socket.destroy()
      }
      if (fault === 'malformed-event' && index === malformedAt) send('{"choices": [{"delta": {"content": ')
      say({ content: index === 0 ? word : ` ${word}` })
      await this.#wait(this.times.betweenTokensMs)
    }
    say({}, 'stop')
    send(chunk([], { usage }))
    if (fault !== 'no-done') send('[DONE]')
    socket.write('0\r\n\r\n')
  }

  /** Ends early when the provider closes. */
  async #wait(forMs: number): Promise<void> {
    await delay(forMs, undefined, { signal: this.#closed.signal })
  }
}

const refusals: Partial<Record<Fault, string>> = {
  'rate-limited': refuse(429, 'rate_limit_error', 'rate_limit_exceeded'),
  overloaded: refuse(503, 'server_error', 'overloaded'),
  'context-too-long': refuse(400, 'invalid_request_error', 'context_length_exceeded'),
  'content-filter': refuse(400, 'invalid_request_error', 'content_policy_violation'),
}
const prefill = refuse(400, 'invalid_request_error', 'invalid_prefill')

function refuse(status: number, type: string, code: string | null, headers: readonly string[] = []): string {
  const body = JSON.stringify({ error: { message: 'The provider refused this request.', type, param: null, code } })
  const head = [`HTTP/1.1 ${status} Refused`, 'content-type: application/json', `content-length: ${body.length}`]
  return `${[...head, ...headers].join('\r\n')}\r\n\r\n${body}`
}

/** The body of the first complete request, and its end; undefined if it is incomplete. */
function takeBody(received: string): { readonly text: string; readonly end: number } | undefined {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(received.slice(0, headEnd))?.[1] ?? 0)
  const end = headEnd + 4 + length
  if (received.length < end) return undefined
  return { text: Buffer.from(received.slice(headEnd + 4, end), 'latin1').toString('utf8'), end }
}
