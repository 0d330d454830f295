import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ServiceError } from '../domain/errors.ts'
import type { FairShare } from '../runtime/fair-share.ts'
import { listen } from '../runtime/listening.ts'
import type { Api } from './api.ts'
import { Connections } from './connections.ts'

/** Longer than load balancers keep idle connections, so that they close first and never use a closing one. */
const keepAliveMs = 75_000
/** Time for aborted answers to send their error. */
const abortMs = 1_000
/** Interval at which idle connections are closed while draining. */
const closeIdleMs = 50
/**
 * How long a connection stays open after an answer that allowed another request on it, because its headers were sent before
 * the drain: clients that send their next request at once must not find it closing.
 */
const lastRequestMs = 500
/** How often Node checks for slow connections. */
const checkMs = 2_000
/** When to check again whether a client that closed its side is still there. */
const askAgainMs = [20, 100, 500, 1_500]
/** A client that reads nothing of a complete answer for this long is disconnected (contract 9.12). */
const slowReaderMs = 60_000

export interface ServeOptions {
  readonly host: string
  readonly port: number
  /** Whether other processes listen on the same port. */
  readonly sharesPort?: boolean | undefined
  readonly headerBytes: number
  /** Time limit for the headers, milliseconds. */
  readonly headerMs: number
  /** Time limit for the whole request, milliseconds. */
  readonly requestMs: number
  /** Maximum number of open connections. */
  readonly connections: number
  /** Connections beyond them, for probes only. */
  readonly probeConnections: number
}

export interface Listening {
  readonly port: number
  readonly api: Api
  /** The open connections and their limit. */
  readonly connections: FairShare
  /**
   * From now on each answer closes its connection unless its headers were already sent, so that clients and proxies open
   * their next one elsewhere (contract 32.6).
   */
  retire(): void
  /**
   * Accepts no new connections and at most one more request on each open one. Resolves when the last connection is
   * closed and the last answer has ended; after `limitMs` it aborts what is left (contract 32.6).
   */
  drain(limitMs: number): Promise<AbortedAnswers>
}

/** What a drain aborted at its limit. */
interface AbortedAnswers {
  /** Requests whose answers were incomplete. */
  readonly running: number
  /** Complete answers that their callers had not read. */
  readonly unread: number
}

/**
 * Listens, then builds the API (the links in its answers need the port) and serves it in the same turn of the event
 * loop, so that no caller comes in between.
 * @throws the system's error if the address is unavailable; errors of `build`
 */
export async function serve(build: (port: number) => Api, options: ServeOptions): Promise<Listening> {
  const connections = new Connections(options.connections, options.probeConnections)
  const server = createHttpServer(options, connections)
  await listen(server, options)
  try {
    const { port } = server.address() as AddressInfo
    const api = build(port)
    const retire = attach(server, api, options, connections)
    return {
      port,
      api,
      connections: connections.share,
      retire,
      drain: (limitMs) => drain(server, api, connections, limitMs),
    }
  } catch (error) {
    server.close()
    throw error
  }
}

/** The HTTP server, which does not listen yet. */
export function createHttpServer(options: ServeOptions, connections: Connections): Server {
  const server = createServer({
    maxHeaderSize: options.headerBytes,
    headersTimeout: options.headerMs,
    requestTimeout: options.requestMs,
    connectionsCheckingInterval: checkMs,
    keepAliveTimeout: keepAliveMs,
    keepAlive: true,
    noDelay: true,
    // Node's own error says nothing useful; the API has one.
    requireHostHeader: false,
    // Clients that offer HTTP/2 in an upgrade header are answered in HTTP/1.1.
    shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
  })
  server.maxConnections = connections.max
  // Node would drop further headers silently; the API rejects them.
  server.maxHeadersCount = 0
  // A client may close its side after sending its request and still read the answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  return server
}

/** Has the API answer the requests of a server. Returns `Listening.retire`. */
export function attach(server: Server, api: Api, options: ServeOptions, connections: Connections): () => void {
  /** The answer in progress on each connection: errors about later bytes must not be written into it. */
  const answers = new WeakMap<Socket, ServerResponse | undefined>()
  // Held until its connection's next request, an answer would move everything that its request allocated into the old
  // generation of the heap, which cost more than answering (decision 37).
  const forget = function (this: ServerResponse): void {
    const { socket, complete } = this.req
    if (this.writableFinished && complete && answers.get(socket) === this) answers.set(socket, undefined)
    if (connections.isRetired && this.shouldKeepAlive) connections.noteReusable()
  }
  const begin = (request: IncomingMessage, response: ServerResponse): void => {
    answers.set(request.socket, response)
    response.on('close', forget)
    const isForProbes = connections.isForProbes(request.socket)
    // Without closing its connection, a client that sends the next request at once is never idle and lasts until the
    // drain's limit.
    if (isForProbes || connections.isRetired || !server.listening) response.shouldKeepAlive = false
    api.handle(request, response, isForProbes ? { probesOnly: true } : undefined)
  }
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    response.on('prefinish', expectReader)
    // Pipelined requests: each starts when it is its turn to answer, so that an answer marked as delivered can be
    // sent at once (contract 6.14).
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
    // Node has handed the connection over, and with it the answer in progress; no real client does this.
    if (answers.get(request.socket)?.socket != null) request.socket.destroy()
    else upgrade(api, request, stream, head)
  })
  // Other expectations may be ignored (RFC 9110, 10.1.1), and Node's own answer says nothing useful.
  server.on('checkExpectation', take)
  server.on('connect', (_request, socket) => socket.destroy())
  return () => {
    connections.retire()
    for (const socket of connections.open) {
      const answer = answers.get(socket)
      if (answer !== undefined && !answer.headersSent) answer.shouldKeepAlive = false
    }
  }
}

/**
 * The client closed its side of the connection. It may still read (half-closed), or it may have disconnected: TCP
 * reports both alike. Interim responses show which: a disconnected client resets the connection at the first one, the
 * next one notices, and the request ends as for any disconnect (contract 9.11). Nothing can be inserted into a
 * started answer, so there it counts as a disconnect.
 */
function askWhetherGone(answer: ServerResponse, socket: Socket, asked = 0): void {
  const { req } = answer
  // An unfinished body is the parser's to reject.
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

/** Starts the time limit for reading a finished answer, unless the system has accepted all of it. */
function expectReader(this: ServerResponse): void {
  const { socket } = this.req
  if (socket.writableLength > 0) socket.setTimeout(slowReaderMs)
}

async function drain(server: Server, api: Api, connections: Connections, limitMs: number): Promise<AbortedAnswers> {
  let aborted: AbortedAnswers = { running: 0, unread: 0 }
  await new Promise<void>((resolve) => {
    let isClosed = false
    let isForced = false
    // Also waits for answers on connections of another server.
    const finish = (): void => {
      if (!isClosed || (api.openRequests > 0 && !isForced)) return
      clearInterval(sweep)
      clearTimeout(limit)
      clearTimeout(force)
      resolve()
    }
    // Clients keep their connections open. While answers run, those get one more request each: a proxy may not have
    // noticed yet, and must not send one on a connection that closes at the same moment.
    const closeIdle = (): void => {
      if (api.openRequests === 0 && connections.msSinceReusable >= lastRequestMs) server.closeIdleConnections()
    }
    const sweep = setInterval(() => {
      closeIdle()
      finish()
    }, closeIdleMs)
    let force: NodeJS.Timeout | undefined
    const limit = setTimeout(() => {
      const open = api.openRequests
      const running = Math.min(open, api.abortAll())
      aborted = { running, unread: open - running }
      force = setTimeout(() => {
        server.closeAllConnections()
        api.sockets.terminate()
        isForced = true
      }, abortMs)
    }, limitMs)
    // Not `server.close`, which also closes every idle connection.
    NetServer.prototype.close.call(server, () => {
      isClosed = true
      finish()
    })
    closeIdle()
    api.sockets.drain()
  })
  server.close()
  return aborted
}

/** `stream` is the connection, or Node's wrapper around it if the request has a body. */
function upgrade(api: Api, request: IncomingMessage, stream: Duplex, head: Buffer): void {
  const { socket } = request
  // Node no longer listens on a connection that it handed over: an unhandled reset would end the process.
  for (const end of new Set([stream, socket])) end.on('error', () => socket.destroy())
  socket.setTimeout(slowReaderMs, () => socket.destroy())
  const response = new ServerResponse(request)
  response.assignSocket(stream as Socket)
  response.shouldKeepAlive = false
  response.on('finish', () => socket.destroySoon())
  api.upgrade(request, response, head)
}

/**
 * Answers bytes that are not HTTP, or a timeout before there is a request, with an error, and closes the connection.
 */
function refuseGarbage(api: Api, error: ServiceError, socket: Socket): void {
  const { requestId, body } = api.errorResponseFor(error)
  const head = [
    `HTTP/1.1 ${error.status} ${reasonPhrases[error.status] ?? 'Bad Request'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    `X-Should-Retry: ${error.entry.retryable}`,
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
