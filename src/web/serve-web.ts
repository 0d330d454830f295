import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { setSecurityHeaders } from './security-headers.ts'
import type { Peer } from './web-app.ts'

const headerBytes = 16 * 1024
const headerMs = 10_000
const requestMs = 30_000
const checkMs = 2_000
const keepAliveMs = 75_000
/** A browser that takes nothing of its page, or sends nothing of its form, for this long is given up. */
const silentMs = 60_000
const maxConnections = 2_000
/** Pages that are still being answered when the service stops have this long. */
const drainMs = 5_000

/** The open port of the web app. */
export interface WebListening extends AsyncDisposable {
  readonly port: number
  /** From now on requests are answered by this; before, each is asked to come again. */
  serve(fetch: (request: Request, peer: Peer) => Promise<Response>): void
}

/**
 * Opens the app's port. What answers there is given afterwards, because it needs to know both ports.
 * @throws the system's error when the address is taken or not ours
 */
export async function listenForWeb({
  host,
  port,
}: {
  readonly host: string
  readonly port: number
}): Promise<WebListening> {
  let fetch: ((request: Request, peer: Peer) => Promise<Response>) | undefined
  const listener = getRequestListener(
    (request, env) => {
      const { incoming, outgoing } = env as HttpBindings
      const connection = { request: incoming, response: outgoing }
      return fetch?.(request, { peerAddress: incoming.socket.remoteAddress ?? '', connection }) ?? notYet()
    },
    // What arrives here has no page: it is no HTTP that Node could make a request of.
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
  server.maxConnections = maxConnections
  server.setTimeout(silentMs)
  await listen(server, host, port)
  return {
    port: (server.address() as AddressInfo).port,
    serve(given) {
      fetch = given
    },
    [Symbol.asyncDispose]: () => close(server),
  }
}

function notYet(): Response {
  const response = bare('Starting. Try again in a second.\n', 503)
  response.headers.set('Retry-After', '1')
  return response
}

/** An answer without a page, with what every answer carries. */
function bare(text: string, status: number): Response {
  const response = new Response(text, { status })
  setSecurityHeaders(response.headers, false)
  return response
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => server.closeAllConnections(), drainMs)
    server.close(() => {
      clearTimeout(force)
      resolve()
    })
    server.closeIdleConnections()
  })
}
