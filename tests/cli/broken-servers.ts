import { once } from 'node:events'
import { createServer, request, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createTcpServer, type AddressInfo, type Server as TcpServer } from 'node:net'
import { makeCertificate } from '../providers/certificate.ts'

/** A local server on a free port, which the end of the test stops. */
export interface Listener extends AsyncDisposable {
  readonly host: string
}

async function opened(server: Server | TcpServer): Promise<Listener> {
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', (socket: { destroy(): void }) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

export function serveHttp(handle: RequestListener): Promise<Listener> {
  return opened(createServer(handle))
}

export function serveTls(handle: RequestListener): Promise<Listener> {
  return opened(createTlsServer(makeCertificate(), handle))
}

/** Accepts connections and never answers. */
export function serveSilence(): Promise<Listener> {
  return opened(createTcpServer())
}

/** A port on which nothing listens. */
export async function freeHost(): Promise<string> {
  await using listener = await serveSilence()
  return listener.host
}

/** The faults of a proxy. */
export interface Meddling {
  readonly requestHeaders?: (headers: IncomingHttpHeaders) => IncomingHttpHeaders
  readonly responseHeaders?: (headers: IncomingHttpHeaders) => IncomingHttpHeaders
  /** Buffers every answer until it is complete. */
  readonly buffers?: boolean
  /** Answers on its own if this returns a status. */
  readonly refuses?: (path: string) => number | undefined
  /** Replaces the answer of the service if this returns a body. */
  readonly says?: (path: string) => object | undefined
}

/** A reverse proxy before a service, with one fault. */
export function serveProxy(origin: string, meddling: Meddling): Promise<Listener> {
  const { requestHeaders = same, responseHeaders = same, buffers = false, refuses, says } = meddling
  return serveHttp((incoming, outgoing) => {
    const path = incoming.url ?? '/'
    const status = refuses?.(path)
    if (status !== undefined) {
      outgoing.writeHead(status, { 'content-type': 'text/html' }).end('<html>no</html>')
      return
    }
    const headers = requestHeaders({ ...incoming.headers })
    const onward = request(`${origin}${path}`, { method: incoming.method ?? 'GET', headers }, (answer) => {
      const said = says?.(path)
      const head = responseHeaders({ ...answer.headers })
      if (said !== undefined) {
        delete head['content-length']
        answer.resume()
        outgoing.writeHead(503, head).end(JSON.stringify(said))
        return
      }
      if (!buffers) {
        outgoing.writeHead(answer.statusCode ?? 502, head)
        answer.pipe(outgoing)
        return
      }
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('end', () => outgoing.writeHead(answer.statusCode ?? 502, head).end(Buffer.concat(pieces)))
    })
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
}

function same(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return headers
}
