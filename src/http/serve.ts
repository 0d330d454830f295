import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ServiceError } from '../domain/errors.ts'
import type { Api } from './api.ts'
import { Connections } from './connections.ts'

/** Longer than load balancers keep idle connections, so that they close first and never hit a closing one. */
const keepAliveMs = 75_000
/** Answers that are cut have this long to say so. */
const cutMs = 1_000
/** While draining, connections whose answers have ended are closed this often. */
const closeIdleMs = 50
/** How often Node looks for connections that are too slow. */
const checkMs = 2_000
/** When a caller that has closed its side is asked again whether it is there. */
const askAgainMs = [20, 100, 500, 1_500]
/** A caller that takes nothing of a complete answer for this long is given up (contract 9.12). */
const slowReaderMs = 60_000

export interface ServeOptions {
  readonly host: string
  readonly port: number
  readonly headerBytes: number
  /** Until the headers are complete. */
  readonly headerMs: number
  /** Until the whole request is there. */
  readonly requestMs: number
  /** Open at once. */
  readonly connections: number
}

export interface Listening {
  readonly port: number
  readonly api: Api
  /**
   * Takes no new connections and at most one more request on each open one; resolves when the last one is closed and the
   * last answer ended, or `limitMs` has passed, then cuts what is left.
   */
  drain(limitMs: number): Promise<Cut>
}

/** What was cut at the limit of a drain. */
interface Cut {
  /** Requests whose answers were not complete. */
  readonly running: number
  /** Complete answers that their callers had not taken. */
  readonly unread: number
}

/**
 * Listens, then has the API built, because the links in its answers need the port, and serves it: in the same turn, so
 * that no caller comes in between. @throws the system's error when the address is taken or not ours; what `build` throws
 */
export async function serve(build: (port: number) => Api, options: ServeOptions): Promise<Listening> {
  const connections = new Connections(options.connections)
  const server = createHttpServer(options, connections)
  await listen(server, options)
  try {
    const { port } = server.address() as AddressInfo
    const api = build(port)
    attach(server, api, options, connections)
    return { port, api, drain: (limitMs) => drain(server, api, limitMs) }
  } catch (error) {
    server.close()
    throw error
  }
}

function createHttpServer(options: ServeOptions, connections: Connections): Server {
  const server = createServer({
    maxHeaderSize: options.headerBytes,
    headersTimeout: options.headerMs,
    requestTimeout: options.requestMs,
    connectionsCheckingInterval: checkMs,
    keepAliveTimeout: keepAliveMs,
    keepAlive: true,
    noDelay: true,
    // Node's own refusal says nothing; the API has one.
    requireHostHeader: false,
    // Whoever offers HTTP/2 in passing, as some clients do, is answered in HTTP/1.1.
    shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
  })
  server.maxConnections = connections.max
  // Node would drop further headers silently; the API refuses them.
  server.maxHeadersCount = 0
  // A client that has sent its request may close its side and still read the answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  return server
}

function attach(server: Server, api: Api, options: ServeOptions, connections: Connections): void {
  /** The answer under way on each connection: what is no request any more must not be written into it. */
  const answers = new WeakMap<Socket, ServerResponse | undefined>()
  // Held until the next request of its connection, an answer would carry all that its request made into the old generation
  // of the heap: that cost more than answering (decision 37).
  const forget = function (this: ServerResponse): void {
    const { socket, complete } = this.req
    if (this.writableFinished && complete && answers.get(socket) === this) answers.set(socket, undefined)
  }
  const begin = (request: IncomingMessage, response: ServerResponse): void => {
    answers.set(request.socket, response)
    response.on('close', forget)
    const isForProbes = connections.isForProbes(request.socket)
    // Without an end to its connection, a caller that asks again at once is never idle and lasts to the drain's limit.
    if (isForProbes || !server.listening) response.shouldKeepAlive = false
    api.handle(request, response, isForProbes ? { probesOnly: true } : undefined)
  }
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    response.on('prefinish', expectReader)
    // Requests sent one behind the other without waiting: each begins when its turn to answer has come, so that what
    // is marked as delivered can leave at once (contract 6.14).
    if (response.socket !== null) begin(request, response)
    else response.once('socket', () => begin(request, response))
  }
  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.on('end', () => {
      const answer = answers.get(socket)
      if (answer !== undefined) askWhetherGone(answer, socket)
    })
  })
  server.on('request', take)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const answer = answers.get(socket)
    const isAnswered = answer !== undefined && answer.headersSent && !(answer.writableFinished && answer.req.complete)
    if (isAnswered || error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else refuseGarbage(api, garbageRefusal(error.code, options.headerMs), socket)
  })
  server.on('upgrade', (request, stream, head) => {
    // Node has given the connection away, and with it the answer that is under way on it: no client asks like that.
    if (answers.get(request.socket)?.socket != null) request.socket.destroy()
    else upgrade(api, request, stream, head)
  })
  // What else is expected may be passed over (RFC 9110, 10.1.1), and Node's own answer says nothing.
  server.on('checkExpectation', take)
  server.on('connect', (_request, socket) => socket.destroy())
}

/**
 * The caller has closed its side. Either it still reads (a half-closed connection), or it is gone: TCP says the same for
 * both. Interim answers tell: whoever is gone resets the connection at the first, which the next one notices, and the
 * request ends as for anybody who leaves (contract 9.11). Within an answer nothing can be put between, so there it counts
 * as leaving.
 */
function askWhetherGone(answer: ServerResponse, socket: Socket, asked = 0): void {
  const { req } = answer
  // An unfinished body is the parser's to refuse.
  if (answer.writableFinished || socket.destroyed || !req.complete) return
  if (answer.headersSent) {
    if (asked === 0) socket.destroy()
    return
  }
  if (req.httpVersion !== '1.1') socket.destroy()
  else answer.writeContinue()
  const waitMs = askAgainMs[asked]
  if (waitMs !== undefined) setTimeout(() => askWhetherGone(answer, socket, asked + 1), waitMs)
}

/** From the end of an answer on its reader has so long to take it. */
function expectReader(this: ServerResponse): void {
  this.req.socket.setTimeout(slowReaderMs)
}

function listen(server: Server, { host, port }: ServeOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

async function drain(server: Server, api: Api, limitMs: number): Promise<Cut> {
  let cut: Cut = { running: 0, unread: 0 }
  await new Promise<void>((resolve) => {
    let isClosed = false
    let isForced = false
    // Answers that leave by another server's connections are waited for, too.
    const finish = (): void => {
      if (!isClosed || (api.openRequests > 0 && !isForced)) return
      clearInterval(sweep)
      clearTimeout(limit)
      clearTimeout(force)
      resolve()
    }
    // Callers keep their connections open, and would go on asking on them.
    const sweep = setInterval(() => {
      server.closeIdleConnections()
      finish()
    }, closeIdleMs)
    let force: NodeJS.Timeout | undefined
    const limit = setTimeout(() => {
      const open = api.openRequests
      const running = Math.min(open, api.cutAll())
      cut = { running, unread: open - running }
      force = setTimeout(() => {
        server.closeAllConnections()
        api.sockets.terminate()
        isForced = true
      }, cutMs)
    }, limitMs)
    server.close(() => {
      isClosed = true
      finish()
    })
    server.closeIdleConnections()
    api.sockets.drain()
  })
  return cut
}

/** `stream` is the connection, or what Node puts over it where the request has a body. */
function upgrade(api: Api, request: IncomingMessage, stream: Duplex, head: Buffer): void {
  const { socket } = request
  // Node gives the connection away and listens to it no more: unheard, a reset would end the process.
  for (const end of new Set([stream, socket])) end.on('error', () => socket.destroy())
  socket.setTimeout(slowReaderMs, () => socket.destroy())
  const response = new ServerResponse(request)
  response.assignSocket(stream as Socket)
  response.shouldKeepAlive = false
  response.on('finish', () => socket.destroySoon())
  api.upgrade(request, response, head)
}

/** Answers what is not HTTP, or too slow, before there is a request: in one sentence, and closes. */
function refuseGarbage(api: Api, refusal: ServiceError, socket: Socket): void {
  const { requestId, body } = api.refusalOf(refusal)
  const head = [
    `HTTP/1.1 ${refusal.status} ${reasonPhrases[refusal.status] ?? 'Bad Request'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    `X-Should-Retry: ${refusal.entry.retryable}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  socket.destroySoon()
}

function garbageRefusal(code: string | undefined, headerMs: number): ServiceError {
  if (code === 'HPE_HEADER_OVERFLOW') return new ServiceError('headers_too_large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new ServiceError('request_timeout', { words: { seconds: Math.ceil(headerMs / 1000) } })
  return new ServiceError('invalid_request', { words: { problem: 'This is not a valid HTTP/1.1 request.' } })
}

const reasonPhrases: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
}
