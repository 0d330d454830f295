import { WebSocketServer, type ServerOptions } from 'ws'
import { invalidRequest, type KeyOwner, ServiceError } from '../domain/errors.ts'
import { FairShare } from '../domain/fair-share.ts'
import { MemoryBudget } from './connection-memory.ts'
import type { EdgeGate } from './edge-gate.ts'
import { checkHeaders } from './request-headers.ts'
import { ResponsesSocket, type SocketParts } from './responses-socket.ts'
import type { Exchange } from './route.ts'
import { usageHeaders } from './signals.ts'
import { nothingAt } from './unserved.ts'
import { SocketTurns, type TurnsParts } from './socket-turns.ts'

/** Connections of one account at once, and of all together, which accounts share fairly. */
const maxOfAccount = 256
const maxOpen = 4_000
/** Bytes of messages that wait on all connections together: at least this many, and as many of the largest messages. */
const minWaitingBytes = 64 * 1024 * 1024
const minWaitingMessages = 12
/** A message may be this much larger than the largest body: its sender then reads why it is refused, and is not cut off. */
const maxExcessBytes = 1024 * 1024
/** A caller that does not answer our closing is cut after this. */
const closeMs = 5_000
const socketsPath = '/v1/responses'
const keyShape = /^[+/0-9A-Za-z]{22}==$/
const versions = ['13', '8']

/** What WebSockets use of the API that they are a part of. */
export interface SocketsParts extends TurnsParts, Omit<SocketParts, 'turns' | 'budget' | 'waitingBytes' | 'limits'> {
  readonly limits: TurnsParts['limits'] & SocketParts['limits']
  readonly baseUrl: string
  readonly edgeGate: EdgeGate | undefined
  /** Whether anything is served at a path. */
  readonly isServed: (path: string) => boolean
}

/** The Responses WebSocket mode (contract 14): connections that stay open for many turns. */
export class ResponsesSockets {
  readonly #parts: SocketsParts
  readonly #socketParts: SocketParts
  readonly #server: WebSocketServer
  readonly #open = new Set<ResponsesSocket>()
  readonly #share = new FairShare(maxOpen)
  #isDraining = false

  constructor(parts: SocketsParts) {
    this.#parts = parts
    const waitingBytes = new FairShare(Math.max(minWaitingBytes, minWaitingMessages * parts.limits.bodyBytes))
    this.#socketParts = { ...parts, turns: new SocketTurns(parts), budget: new MemoryBudget(), waitingBytes }
    // Its types do not know `closeTimeout` yet.
    const options: ServerOptions & { closeTimeout: number } = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      autoPong: false,
      maxPayload: parts.limits.bodyBytes + maxExcessBytes,
      closeTimeout: closeMs,
      handleProtocols: () => false,
    }
    this.#server = new WebSocketServer(options)
  }

  /** Answers that are under way. */
  get answering(): number {
    return this.#socketParts.turns.answering
  }

  /** Makes a connection of an upgrade. @throws ServiceError where it is refused; the response is then still to be written */
  async accept(exchange: Exchange, path: string, head: Buffer): Promise<void> {
    const { request } = exchange
    const { edgeGate, authenticate, signalsOf } = this.#parts
    checkHeaders(request)
    // Clients of WebSockets often do not say what they are (contract 2.29).
    const userAgent = request.headers['user-agent']
    if (userAgent !== undefined) edgeGate?.pass(userAgent, exchange.requestId)
    if (path !== socketsPath) {
      // Below /v1/ even what is not there asks for a key first (contract 2.20).
      if (path.startsWith('/v1/')) exchange.principal = await authenticate(request)
      throw this.#notHere(path)
    }
    const principal = await authenticate(request)
    exchange.principal = principal
    const { accountId } = principal
    this.#parts.uncounted.take(accountId)
    checkHandshake(exchange)
    const signals = await signalsOf(principal)
    const usage = signals === undefined ? [] : usageHeaders(signals, this.#parts.nowMs())
    this.#checkRoom(accountId)
    this.#upgrade(exchange, head, ['X-Request-Id', exchange.requestId, ...usage], principal)
  }

  /** Closes what is idle, and everything else when its turn is over; takes nothing new. */
  drain(): void {
    this.#isDraining = true
    for (const socket of this.#open) socket.drain()
  }

  /** Cuts what is left. */
  terminate(): void {
    for (const socket of this.#open) socket.terminate()
  }

  #notHere(path: string): ServiceError {
    if (this.#parts.isServed(path)) return this.#useHttp(`WebSockets are served at ${socketsPath} only.`)
    return nothingAt(path, this.#parts.baseUrl)
  }

  #checkRoom(accountId: string): void {
    if (this.#isDraining) throw new ServiceError('restarting', { retryAfterSeconds: 1 })
    if (this.#share.heldBy(accountId) >= maxOfAccount) {
      throw this.#useHttp(`This account has ${maxOfAccount} WebSockets open, as many as it may have.`)
    }
    if (!this.#share.has(accountId)) {
      throw this.#useHttp('This server has as many WebSockets open as it can hold, or as it can hold for one account.')
    }
  }

  /** With this status clients go on over HTTP at once (contract 14.10). */
  #useHttp(problem: string): ServiceError {
    return new ServiceError('upgrade_required', { words: { problem, baseUrl: this.#parts.baseUrl } })
  }

  #upgrade(
    { request, response }: Exchange,
    head: Buffer,
    headers: readonly string[],
    { accountId, keyId }: KeyOwner,
  ): void {
    const raw = request.socket
    response.detachSocket(raw)
    this.#server.once('headers', (lines: string[]) => {
      for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
    })
    this.#server.handleUpgrade(request, raw, head, (socket) => {
      const opened = new ResponsesSocket(this.#socketParts, { socket, raw }, request, { accountId, keyId })
      const isCounted = this.#share.take(accountId)
      this.#open.add(opened)
      raw.once('close', () => {
        this.#open.delete(opened)
        if (isCounted) this.#share.give(accountId)
      })
    })
    this.#server.removeAllListeners('headers')
  }
}

/** @throws ServiceError `method_not_allowed`, `invalid_request` for what is no opening of a WebSocket (RFC 6455, 4.2.1) */
function checkHandshake({ request, response }: Exchange): void {
  const { method, headers } = request
  if (method !== 'GET') {
    throw new ServiceError('method_not_allowed', { words: { method: 'This method', allowed: 'GET' } })
  }
  // Where it has a body, what follows it could be read in two ways.
  if (response.socket !== request.socket) throw invalidRequest('body', 'An upgrade has no body. Send it without one.')
  if (!keyShape.test(headers['sec-websocket-key'] ?? '')) {
    throw invalidRequest('sec-websocket-key', 'The header sec-websocket-key must be 16 bytes in base64.')
  }
  if (!versions.includes(headers['sec-websocket-version'] ?? '')) {
    throw invalidRequest('sec-websocket-version', 'The header sec-websocket-version must be 13.')
  }
}
