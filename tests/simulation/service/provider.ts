import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import type { ConnectorOptions, Connect } from '../../../src/providers/http/connector.ts'
import { formatAnswersAt } from '../../../src/simulation/providers/format-answers.ts'
import type { Dice } from '../dice.ts'
import type { ProcessClock } from './process-clock.ts'
import { CallAnswer } from './provider-answer.ts'
import { answers, type FaultClass, faultOf, type Treatment } from './provider-faults.ts'
import { type Network, type Peer, SimulatedSocket } from './sockets.ts'

/** The tag of one request in its prompt; see `tagOf`. */
const tagShape = /tag-(\d+)-(\d+)-/

/** One request as a provider saw it. */
export interface ProviderCall {
  readonly number: number
  readonly provider: string
  /** The account and the HTTP request that caused it, from its prompt. */
  readonly account: number
  readonly request: number
  /** The service's ID of the request, as providers see it: `uuidOf`. */
  readonly uuid: string | undefined
  readonly body: string
  readonly authorization: string | undefined
  readonly treatment: Treatment
  /** What the answer says, if it is complete. */
  readonly text: string
  readonly atMs: number
  /** Whether its connection had carried a call before. */
  readonly isReused: boolean
  /** When the provider last sent something; at first, when it received the request. */
  lastSentMs: number
  /** When the whole answer was sent without a fault. */
  completedMs: number | undefined
  /** When the service closed the connection before that. */
  abandonedMs: number | undefined
}

/** How a provider fares at the moment. */
export interface Condition {
  readonly faults: readonly FaultClass[]
  /** The share of requests and connections that meet one of them. */
  readonly share: number
}

export const healthy: Condition = { faults: [], share: 0 }

/** One provider with connections, requests, and faults of its own. */
export class SimulatedProvider {
  readonly name: string
  condition: Condition = healthy
  readonly calls: ProviderCall[] = []
  readonly #network: Network
  readonly #dice: Dice
  readonly #numbers: { next: number }
  readonly #open = new Set<ProviderConnection>()

  /** `numbers` numbers the calls of all providers. */
  constructor(name: string, network: Network, numbers: { next: number }) {
    this.name = name
    this.#network = network
    this.#dice = network.dice
    this.#numbers = numbers
  }

  /** How one process connects to this provider. */
  connector(clock: ProcessClock, sockets: Set<SimulatedSocket>, options: ConnectorOptions): Connect {
    const { timeline, latencyMs } = this.#network
    return (onRead, callback) => {
      let isSettled = false
      const settle = (result: Parameters<typeof callback>[0]): void => {
        if (isSettled) return
        isSettled = true
        limit.cancel()
        callback(result)
      }
      const limit = options.clock.after(options.connectMs, () => settle('timeout'))
      const fault = this.#meets('connect')
        ? this.#dice.pick(['refused', 'refused', 'hole', 'shortage'] as const)
        : undefined
      if (fault === 'hole') return
      timeline.after(2 * latencyMs, () =>
        clock.deliver(() => {
          if (isSettled) return
          if (fault === 'refused') return settle('unreachable')
          if (fault === 'shortage') {
            options.onShortage?.('EMFILE')
            return settle('not_sent')
          }
          const connection = new ProviderConnection(this, this.#network)
          const socket = new SimulatedSocket(this.#network, clock, connection, { address: '203.0.113.7', onRead })
          connection.socket = socket
          sockets.add(socket)
          socket.on('close', () => sockets.delete(socket))
          this.#open.add(connection)
          settle(socket as unknown as Socket)
        }),
      )
    }
  }

  /** Closes connections that carry no request, as after an idle timeout of the provider. */
  closeIdle(): void {
    for (const connection of this.#open) connection.closeIdle()
  }

  ended(connection: ProviderConnection): void {
    this.#open.delete(connection)
  }

  /** Decides how a request is treated. */
  begin(
    body: string,
    { authorization, uuid }: Pick<ProviderCall, 'authorization' | 'uuid'>,
    isReused: boolean,
  ): ProviderCall {
    const [, account = '-1', request = '-1'] = tagShape.exec(body) ?? []
    const number = this.#numbers.next++
    const fault = this.#fault()
    const call: ProviderCall = {
      number,
      provider: this.name,
      account: Number(account),
      request: Number(request),
      uuid,
      body,
      authorization,
      treatment: fault === undefined ? answers(this.#dice) : faultOf(fault, this.#dice),
      text: textOf(number, Number(account), Number(request), 1 + this.#dice.upTo(4)),
      atMs: this.#network.timeline.nowMs,
      isReused,
      lastSentMs: this.#network.timeline.nowMs,
      completedMs: undefined,
      abandonedMs: undefined,
    }
    this.calls.push(call)
    this.#network.timeline.note(this.name, `call ${number} for request ${call.request}: ${describe(call.treatment)}`)
    return call
  }

  #fault(): Exclude<FaultClass, 'connect'> | undefined {
    const faults = this.condition.faults.filter((fault) => fault !== 'connect')
    return faults.length > 0 && this.#dice.chance(this.condition.share) ? this.#dice.pick(faults) : undefined
  }

  #meets(fault: FaultClass): boolean {
    return this.condition.faults.includes(fault) && this.#dice.chance(this.condition.share)
  }
}

/** What a complete answer says: each word names its call, and the first ones whose request it answers. */
function textOf(number: number, account: number, request: number, words: number): string {
  return `for-${account}-${request}-${number} ${Array.from({ length: words }, (_, at) => `w${number}.${at}`).join(' ')} end-${number}`
}

function describe(treatment: Treatment): string {
  return Object.entries(treatment)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => (name === 'kind' ? String(value) : `${name}=${value}`))
    .join(' ')
}

/** One connection at the provider's end: reads one request after another. */
class ProviderConnection implements Peer {
  socket!: SimulatedSocket
  readonly #provider: SimulatedProvider
  readonly #network: Network
  #received = ''
  #served = 0
  #call: ProviderCall | undefined
  #isClosed = false

  constructor(provider: SimulatedProvider, network: Network) {
    this.#provider = provider
    this.#network = network
  }

  received(bytes: Buffer): void {
    this.#received += bytes.toString('latin1')
    if (this.#call === undefined && !this.#isClosed) this.#readRequest()
  }

  ended(): void {
    if (this.#call !== undefined && this.#call.completedMs === undefined)
      this.#call.abandonedMs = this.#network.timeline.nowMs
    this.#close()
  }

  closeIdle(): void {
    if (this.#call !== undefined || this.#isClosed) return
    this.socket.endOfPeer()
    this.#close()
  }

  #close(): void {
    this.#isClosed = true
    this.#provider.ended(this)
  }

  #readRequest(): void {
    const headEnd = this.#received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = this.#received.slice(0, headEnd)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    if (this.#received.length < headEnd + 4 + length) return
    const text = Buffer.from(this.#received.slice(headEnd + 4, headEnd + 4 + length), 'latin1').toString('utf8')
    this.#received = this.#received.slice(headEnd + 4 + length)
    const path = head.split(' ', 2)[1]!
    const format = formatAnswersAt(path)
    if (format === undefined) throw new Error(`the service called ${path}`)
    const authorization = /\r\n(?:authorization|x-api-key): ([^\r]*)/i.exec(head)?.[1]
    const uuid = /\r\nx-request-id: ([^\r]*)/i.exec(head)?.[1]
    const call = this.#provider.begin(text, { authorization, uuid }, this.#served > 0)
    this.#served += 1
    this.#call = call
    new CallAnswer(
      this.socket,
      this.#network,
      call,
      format,
      (how) => {
        if (how === 'abandoned' || this.#isClosed) return
        this.#call = undefined
        if (how === 'rst') this.socket.resetByPeer()
        else if (how === 'fin') this.socket.endOfPeer()
        if (how === 'keep') this.#readRequest()
        else this.#close()
      },
      () => this.#isClosed,
    ).start()
  }
}
