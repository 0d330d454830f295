import { createServer, type Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Api } from './api.ts'

/** Longer than load balancers keep idle connections, so that they close first and never hit a closing one. */
const keepAliveMs = 75_000
/** How often Node looks for connections that are too slow. */
const checkMs = 2_000
/** More headers than any client sends; further ones are refused by Node. */
const maxHeaders = 200

export interface ServeOptions {
  readonly host: string
  readonly port: number
  readonly headerBytes: number
  /** Until the headers are complete. */
  readonly headerMs: number
  /** Until the whole request is there. */
  readonly requestMs: number
  readonly connections: number
}

export interface Listening {
  readonly port: number
  /** Takes no new connections; resolves when the last one is closed or `limitMs` has passed, then cuts what is left. Gives how many were cut. */
  drain(limitMs: number): Promise<number>
}

/** Listens; `apiOf` is asked at each request, because the API may need to know the port. @throws the system's error when the address is taken or not ours */
export async function serve(apiOf: () => Api, options: ServeOptions): Promise<Listening> {
  const server = createServer(
    {
      maxHeaderSize: options.headerBytes,
      headersTimeout: options.headerMs,
      requestTimeout: options.requestMs,
      connectionsCheckingInterval: checkMs,
      keepAliveTimeout: keepAliveMs,
      keepAlive: true,
      noDelay: true,
      requireHostHeader: true,
    },
    (request, response) => apiOf().handle(request, response),
  )
  server.maxConnections = options.connections
  server.maxHeadersCount = maxHeaders
  server.on('clientError', refuseGarbage)
  server.on('upgrade', (request, socket: Socket) => {
    const response = new ServerResponse(request)
    response.assignSocket(socket)
    response.shouldKeepAlive = false
    response.on('finish', () => socket.end())
    apiOf().refuseUpgrade(request, response)
  })
  server.on('connect', (_request, socket) => socket.destroy())
  await listen(server, options)
  const { port } = server.address() as AddressInfo
  return { port, drain: (limitMs) => drain(server, apiOf(), limitMs) }
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

async function drain(server: Server, api: Api, limitMs: number): Promise<number> {
  let cut = 0
  await new Promise<void>((resolve) => {
    const limit = setTimeout(() => {
      cut = api.openRequests
      server.closeAllConnections()
    }, limitMs)
    server.close(() => {
      clearTimeout(limit)
      resolve()
    })
    server.closeIdleConnections()
  })
  return cut
}

/** Answers what is not HTTP, or too slow, before there is a request: in one sentence, and closes. */
function refuseGarbage(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const { status, code, message } = garbage[error.code ?? ''] ?? notHttp
  const body = JSON.stringify({
    error: { message, type: 'invalid_request_error', param: null, code, source: 'client', retryable: false, request_id: null },
  })
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'X-Should-Retry: false',
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

const notHttp = { status: '400 Bad Request', code: 'invalid_request', message: 'This is not a valid HTTP/1.1 request.' }

const garbage: Readonly<Record<string, { status: string; code: string; message: string }>> = {
  HPE_HEADER_OVERFLOW: {
    status: '431 Request Header Fields Too Large',
    code: 'invalid_request',
    message: 'The headers of this request are too large. Send fewer or shorter ones.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: '408 Request Timeout',
    code: 'request_timeout',
    message: 'The request did not arrive in time. Send it again.',
  },
}
