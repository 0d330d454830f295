import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { setSecurityHeaders } from './http/security-headers.ts'
import type { Peer } from './web-app.ts'

/** Answers a request of Node's HTTP server. */
export type WebListener = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** Passes requests of Node's HTTP server to the web app. */
export function createWebListener(fetch: (request: Request, peer: Peer) => Promise<Response>): WebListener {
  const listener = getRequestListener(
    (request, env) => {
      const { incoming, outgoing } = env as HttpBindings
      const exchange = { request: incoming, response: outgoing }
      return fetch(request, { peerAddress: incoming.socket.remoteAddress ?? '', exchange })
    },
    // Handles input that Node cannot parse as an HTTP request.
    { overrideGlobalObjects: false, errorHandler: badRequest },
  )
  return (request, response) => listener(request, response)
}

function badRequest(): Response {
  const response = new Response('Bad request\n', { status: 400 })
  setSecurityHeaders(response.headers, false)
  return response
}
