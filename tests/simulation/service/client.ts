import { Buffer } from 'node:buffer'
import type { Server } from 'node:http'
import type { ConversationFormatId } from '../../../src/domain/format-id.ts'
import type { ProcessClock } from './process-clock.ts'
import { ResponseReader } from './response-reader.ts'
import { type Network, type Peer, SimulatedSocket } from './sockets.ts'
import { secretStart } from './template.ts'

/** What a client sends, and how it behaves. */
export interface ClientPlan {
  readonly account: number
  readonly key: string
  readonly format: ConversationFormatId
  readonly stream: boolean
  readonly profile: string
  /** Disconnects this long after it began to send; undefined: never. */
  readonly leavesAfterMs: number | undefined
  /** Disconnects once it has read this many bytes of an answer. */
  readonly leavesAfterBytes: number | undefined
  readonly msPerByte: number | undefined
  /** Sends its body in pieces, this far apart. */
  readonly sendsSlowlyMs: number | undefined
  /** How often it tries again as a response tells it. */
  readonly retries: number
  /** Names its request with an `Idempotency-Key`, so that it also tries again after its connection broke. */
  readonly isNamed: boolean
  /** Sends a named request once more after this long, and after it has the whole answer. */
  readonly againAfterMs: number | undefined
}

/** How an exchange ended for its client. */
export type ExchangeEnd = 'whole' | 'closed' | 'reset' | 'left'

/** One HTTP request and what its client saw of it. */
export interface Exchange {
  readonly number: number
  readonly plan: ClientPlan
  /** The process that was asked. */
  readonly process: number
  readonly startedMs: number
  /** The retry that this is, and the exchange before it. */
  readonly retryOf: Exchange | undefined
  readonly response: ResponseReader
  /** When the first text of a provider arrived. */
  firstContentMs: number | undefined
  endedMs: number | undefined
  end: ExchangeEnd | undefined
}

/** The first of the exchanges that send the same request. */
export function firstOf(exchange: Exchange): Exchange {
  let first = exchange
  while (first.retryOf !== undefined && first.plan.isNamed) first = first.retryOf
  return first
}

/** Where clients connect to. */
export interface Door {
  readonly number: number
  readonly server: Server
  readonly clock: ProcessClock
  readonly sockets: Set<SimulatedSocket>
}

/** Where the tag of a request ends; see `tagShape` of the providers. */
export const promptSecret = `${secretStart}of-prompt`

const paths: Readonly<Record<ConversationFormatId, string>> = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
}

function bodyOf({ format, stream, profile, account }: ClientPlan, number: number): string {
  const text = `tag-${account}-${number}- Say hello. ${promptSecret}-${account}`
  const shared = { model: profile, stream }
  if (format === 'openai-responses') return JSON.stringify({ ...shared, input: text })
  const messages = [{ role: 'user', content: text }]
  if (format === 'openai-chat') return JSON.stringify({ ...shared, messages })
  return JSON.stringify({ ...shared, messages, max_tokens: 500 })
}

/** Sends one request over a connection of its own, and calls back when it has ended. */
export class ClientConnection implements Peer {
  readonly #network: Network
  readonly #exchange: Exchange
  readonly #onEnd: (exchange: Exchange) => void
  readonly #socket: SimulatedSocket

  private constructor(network: Network, door: Door, exchange: Exchange, onEnd: (exchange: Exchange) => void) {
    this.#network = network
    this.#exchange = exchange
    this.#onEnd = onEnd
    const { plan } = exchange
    const address = `198.51.100.${plan.account + 1}`
    this.#socket = new SimulatedSocket(network, door.clock, this, { address })
    door.sockets.add(this.#socket)
    this.#socket.on('close', () => door.sockets.delete(this.#socket))
    network.timeline.after(network.latencyMs, () =>
      door.clock.deliver(() => door.server.emit('connection', this.#socket)),
    )
    this.#socket.readSlowly(plan.msPerByte)
    network.timeline.after(network.latencyMs * 2, () => this.#send())
    if (plan.leavesAfterMs !== undefined) network.timeline.after(plan.leavesAfterMs, () => this.#leave())
  }

  static open(network: Network, door: Door, exchange: Exchange, onEnd: (exchange: Exchange) => void): void {
    void new ClientConnection(network, door, exchange, onEnd)
  }

  received(bytes: Buffer): void {
    const { response, plan } = this.#exchange
    if (this.#exchange.end !== undefined) return
    response.push(bytes)
    if (this.#exchange.firstContentMs === undefined && response.body.includes('for-'))
      this.#exchange.firstContentMs = this.#network.timeline.nowMs
    if (plan.leavesAfterBytes !== undefined && response.body.length >= plan.leavesAfterBytes) this.#leave()
    else if (response.isWhole) {
      this.#end('whole')
      this.#socket.endOfPeer()
    }
  }

  ended(reset: boolean): void {
    this.#end(reset ? 'reset' : 'closed')
  }

  #send(): void {
    const { plan } = this.#exchange
    const { number } = firstOf(this.#exchange)
    const body = Buffer.from(bodyOf(plan, number))
    const head = [
      `POST ${paths[plan.format]} HTTP/1.1`,
      'host: service.sim',
      plan.format === 'anthropic-messages' ? `x-api-key: ${plan.key}` : `authorization: Bearer ${plan.key}`,
      'user-agent: simulated-client/1.0',
      'content-type: application/json',
      `content-length: ${body.length}`,
      ...(plan.isNamed ? [`idempotency-key: key-of-${number}`] : []),
    ]
    const bytes = Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
    if (plan.sendsSlowlyMs === undefined) return this.#socket.send(bytes)
    const cut = bytes.length - (body.length >> 1)
    this.#socket.send(bytes.subarray(0, cut))
    this.#network.timeline.after(plan.sendsSlowlyMs, () => this.#socket.send(bytes.subarray(cut)))
  }

  #leave(): void {
    if (this.#exchange.end !== undefined) return
    this.#socket.resetByPeer()
    this.#end('left')
  }

  #end(how: ExchangeEnd): void {
    const exchange = this.#exchange
    if (exchange.end !== undefined) return
    exchange.end = how
    exchange.endedMs = this.#network.timeline.nowMs
    this.#network.timeline.note(
      'client',
      `request ${exchange.number}: ${exchange.response.status ?? 'nothing'}, ${how}`,
    )
    this.#onEnd(exchange)
  }
}
