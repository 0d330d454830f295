import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { closeServer, listen, shareAmongAddresses } from '../runtime/listening.ts'
import { setSecurityHeaders } from './http/security-headers.ts'
import type { Peer } from './web-app.ts'

const headerBytes = 16 * 1024
const headerMs = 10_000
const requestMs = 30_000
const checkMs = 2_000
const keepAliveMs = 75_000
/** Idle timeout of a connection. */
const silentMs = 60_000
/** Time for requests in progress to complete at shutdown. */
const drainMs = 5_000

/** The listening server of the web app. */
export interface WebListening extends AsyncDisposable {
  readonly port: number
  /** Sets the request handler; before that, requests get a 503 with `Retry-After`. */
  serve(fetch: (request: Request, peer: Peer) => Promise<Response>): void
}

export interface ListenForWebOptions {
  readonly host: string
  readonly port: number
  /** Whether other processes listen on the same port. */
  readonly sharesPort?: boolean | undefined
  /** Maximum number of open connections. */
  readonly connections: number
}

/**
 * Opens the app's port. The handler is set later, because it needs to know both ports.
 * @throws the system error if the address is in use or not available
 */
export async function listenForWeb(options: ListenForWebOptions): Promise<WebListening> {
  const { connections } = options
  let fetch: ((request: Request, peer: Peer) => Promise<Response>) | undefined
  const listener = getRequestListener(
    (request, env) => {
      const { incoming, outgoing } = env as HttpBindings
      const exchange = { request: incoming, response: outgoing }
      return fetch?.(request, { peerAddress: incoming.socket.remoteAddress ?? '', exchange }) ?? notYet()
    },
    // Handles input that Node cannot parse as an HTTP request.
    { overrideGlobalObjects: false, errorHandler: () => bare('Bad request\n', 400) },
  )
  const server = createServer(
    {
      maxHeaderSize: headerBytes,
      headersTimeout: headerMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: checkMs,
      keepAliveTimeout: keepAliveMs,
      noDelay: true,
    },
    (request, response) => void listener(request, response),
  )
  shareAmongAddresses(server, connections)
  server.setTimeout(silentMs)
  await listen(server, options)
  return {
    port: (server.address() as AddressInfo).port,
    serve(given) {
      fetch = given
    },
    [Symbol.asyncDispose]: () => closeServer(server, drainMs),
  }
}

function notYet(): Response {
  const response = bare('Starting. Try again in a second.\n', 503)
  response.headers.set('Retry-After', '1')
  return response
}

/** A plain-text response with the common headers. */
function bare(text: string, status: number): Response {
  const response = new Response(text, { status })
  setSecurityHeaders(response.headers, false)
  return response
}
