import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** A provider whose answers a test writes byte by byte. */
export interface ScriptedUpstream {
  readonly baseUrl: string
  /** The bodies of all requests so far. */
  readonly bodies: string[]
  answer: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>
  close(): Promise<void>
}

export async function startScriptedUpstream(): Promise<ScriptedUpstream> {
  const bodies: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      bodies.push(Buffer.concat(chunks).toString('utf8'))
      // Some tests disconnect in the middle of an answer.
      Promise.resolve(upstream.answer(request, response)).catch(() => response.destroy())
    })
  })
  server.on('connection', (socket) => {
    socket.setNoDelay(true)
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const upstream: ScriptedUpstream = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    bodies,
    answer: (_request, response) => void response.writeHead(500).end(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
  return upstream
}

export function openEventStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
}

export function sendJson(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}

/** Settings of a service whose only backend is this provider. */
export function settingsFor(
  upstream: ScriptedUpstream,
  format: string,
  timeouts?: Readonly<Record<string, string>>,
): Record<string, unknown> {
  return {
    providers: { odd: { preset: 'custom', base_url: upstream.baseUrl, format } },
    backends: { odd: { provider: 'odd', model: 'upstream-model', ...(timeouts === undefined ? {} : { timeouts }) } },
  }
}
