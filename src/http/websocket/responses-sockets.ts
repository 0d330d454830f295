import { WebSocketServer, type ServerOptions } from 'ws'
import { invalidRequest, type KeyOwner, ServiceError } from '../../domain/errors.ts'
import { FairShare } from '../../runtime/fair-share.ts'
import type { EdgeGate } from '../edge-gate.ts'
import { checkRequestHeaders } from '../request-headers.ts'
import type { Exchange } from '../route.ts'
import { unknownPathError } from '../unknown-path.ts'
import { usageHeaders } from '../usage-headers.ts'
import { CacheBudget } from './connection-cache.ts'
import { ResponsesSocket, type SocketDeps } from './responses-socket.ts'
import { SocketRequests, type SocketRequestsDeps } from './socket-requests.ts'

/** Open connections per account, and in total, shared fairly among accounts. */
const maxOfAccount = 256
const maxOpen = 4_000
/** Bytes of waiting messages over all connections: at least this many, and as many of the largest messages. */
const minWaitingBytes = 64 * 1024 * 1024
const minWaitingMessages = 12
/**
 * A message may exceed the largest body by this much, so that its sender gets an error instead of a closed
 * connection.
 */
const maxExcessBytes = 1024 * 1024
/** A client that does not complete the closing handshake is disconnected after this time. */
const closeMs = 5_000
const socketsPath = '/v1/responses'
const keyShape = /^[+/0-9A-Za-z]{22}==$/
const versions = ['13', '8']

/** Dependencies of the WebSocket endpoint. */
export interface SocketsOptions
  extends SocketRequestsDeps, Omit<SocketDeps, 'requests' | 'budget' | 'waitingBytes' | 'limits'> {
  readonly limits: SocketRequestsDeps['limits'] & SocketDeps['limits']
  readonly baseUrl: string
  readonly edgeGate: EdgeGate | undefined
  /** Whether a path exists. */
  readonly isServed: (path: string) => boolean
}

/** The Responses WebSocket mode (contract 2.3, 14): connections that stay open for many requests. */
export class ResponsesSockets {
  readonly #deps: SocketsOptions
  readonly #socketParts: SocketDeps
  readonly #server: WebSocketServer
  readonly #open = new Set<ResponsesSocket>()
  readonly #share = new FairShare(maxOpen)
  #isDraining = false

  constructor(deps: SocketsOptions) {
    this.#deps = deps
    const waitingBytes = new FairShare(Math.max(minWaitingBytes, minWaitingMessages * deps.limits.bodyBytes))
    this.#socketParts = { ...deps, requests: new SocketRequests(deps), budget: new CacheBudget(), waitingBytes }
    // The types of `ws` do not include `closeTimeout` yet.
    const options: ServerOptions & { closeTimeout: number } = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      autoPong: false,
      maxPayload: deps.limits.bodyBytes + maxExcessBytes,
      closeTimeout: closeMs,
      handleProtocols: () => false,
    }
    this.#server = new WebSocketServer(options)
  }

  /** The open connections and the bytes of queued messages, for metrics. */
  get shares(): Readonly<Record<string, FairShare>> {
    return { web_sockets: this.#share, web_socket_bytes: this.#socketParts.waitingBytes }
  }

  /** Answers in progress. */
  get answering(): number {
    return this.#socketParts.requests.answering
  }

  /**
   * Upgrades a request to a WebSocket.
   * @throws ServiceError if it is rejected; the response is then still to be written
   */
  async accept(exchange: Exchange, path: string, head: Buffer): Promise<void> {
    const { request } = exchange
    const { edgeGate, authenticate, signalsOf } = this.#deps
    checkRequestHeaders(request)
    // WebSocket clients often do not identify themselves (contract 2.29).
    const userAgent = request.headers['user-agent']
    if (userAgent !== undefined) edgeGate?.pass(userAgent, exchange.requestId)
    if (path !== socketsPath) {
      // Below /v1/ even unknown paths require a key first (contract 2.20).
      if (path.startsWith('/v1/')) exchange.principal = await authenticate(request)
      throw this.#notHere(path)
    }
    const principal = await authenticate(request)
    exchange.principal = principal
    const { accountId } = principal
    this.#deps.uncounted.take(accountId)
    checkHandshake(exchange)
    const signals = await signalsOf(principal)
    const usage = signals === undefined ? [] : usageHeaders(signals, this.#deps.nowMs())
    this.#checkRoom(accountId)
    this.#upgrade(exchange, head, ['X-Request-Id', exchange.requestId, ...usage], principal)
  }

  /** Closes idle connections at once and the others after their current request; accepts no new ones. */
  drain(): void {
    this.#isDraining = true
    for (const socket of this.#open) socket.drain()
  }

  /** Closes the remaining connections without a handshake. */
  terminate(): void {
    for (const socket of this.#open) socket.terminate()
  }

  #notHere(path: string): ServiceError {
    if (this.#deps.isServed(path)) return this.#useHttp(`WebSockets are supported only at ${socketsPath}.`)
    return unknownPathError(path, this.#deps.baseUrl)
  }

  #checkRoom(accountId: string): void {
    if (this.#isDraining) throw new ServiceError('restarting', { retryAfterSeconds: 1 })
    if (this.#share.heldBy(accountId) >= maxOfAccount) {
      throw this.#useHttp(`This account has reached its limit of ${maxOfAccount} open WebSockets.`)
    }
    if (!this.#share.has(accountId)) {
      throw this.#useHttp('This server has reached its limit on open WebSockets, in total or for this account.')
    }
  }

  /** With this status, clients fall back to HTTP at once (contract 14.10). */
  #useHttp(problem: string): ServiceError {
    return new ServiceError('upgrade_required', { words: { problem, baseUrl: this.#deps.baseUrl } })
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

/** @throws ServiceError `method_not_allowed`, `invalid_request` for an invalid WebSocket handshake (RFC 6455, 4.2.1) */
function checkHandshake({ request, response }: Exchange): void {
  const { method, headers } = request
  if (method !== 'GET') {
    throw new ServiceError('method_not_allowed', {
      words: { method: 'This method', allowed: 'GET', allow: 'GET, OPTIONS' },
    })
  }
  // With a body, what follows it would be ambiguous.
  if (response.socket !== request.socket)
    throw invalidRequest('body', 'An upgrade request must not have a body. Send it without one.')
  if (!keyShape.test(headers['sec-websocket-key'] ?? '')) {
    throw invalidRequest('sec-websocket-key', 'The sec-websocket-key header must be 16 bytes in base64.')
  }
  if (!versions.includes(headers['sec-websocket-version'] ?? '')) {
    throw invalidRequest('sec-websocket-version', 'The sec-websocket-version header must be 13.')
  }
}
