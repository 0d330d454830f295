// The reference for all measurements, in its own process. It forwards bytes in both directions with backpressure, from
// `node:http` to undici's dispatch. It checks no key, and does not parse, count, or record.
import { createServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'
import type { Dispatcher } from 'undici'
import type { Listening } from './protocol.ts'

const maxRequestBytes = 1024 * 1024
const backlog = 4096
const keepAliveMs = 65_000

const [origin, connections] = process.argv.slice(2)
if (origin === undefined || connections === undefined) throw new Error('usage: relay.ts ORIGIN CONNECTIONS')
const pool = new Pool(origin, { connections: Number(connections), pipelining: 1 })

class Answer implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse
  #upstream: Dispatcher.DispatchController | undefined
  #isOver = false

  constructor(response: ServerResponse) {
    this.#response = response
    response.on('close', () => {
      if (!this.#isOver) this.#upstream?.abort(new Error('the client left'))
    })
    response.on('drain', () => this.#upstream?.resume())
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#upstream = controller
    if (this.#response.destroyed) controller.abort(new Error('the client left'))
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    const length = headers['content-length']
    const kept: OutgoingHttpHeaders = {
      'content-type': headers['content-type'] ?? 'application/octet-stream',
      'x-request-id': 'req_0000000000000000000000',
      'x-ratelimit-limit': '600',
      'x-ratelimit-remaining': '599',
      'x-ratelimit-reset': '1795191460',
      'x-quota-limit': '100000',
      'x-quota-remaining': '99999',
    }
    if (length !== undefined) kept['content-length'] = length
    this.#response.writeHead(status, kept)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#response.write(chunk)) controller.pause()
  }

  onResponseEnd(): void {
    this.#isOver = true
    this.#response.end()
  }

  onResponseError(): void {
    this.#isOver = true
    if (this.#response.headersSent) this.#response.destroy()
    else this.#response.writeHead(502).end()
  }
}

function relay(request: IncomingMessage, response: ServerResponse): void {
  const parts: Buffer[] = []
  let bytes = 0
  request.on('data', (part: Buffer) => {
    parts.push(part)
    bytes += part.length
    if (bytes > maxRequestBytes) request.destroy()
  })
  request.on('end', () => {
    const headers = {
      'content-type': request.headers['content-type'] ?? 'application/json',
      authorization: request.headers.authorization ?? '',
      accept: request.headers.accept ?? '*/*',
      'user-agent': 'svc-router-bench-relay',
    }
    const body = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    pool.dispatch({ method: 'POST', path: request.url ?? '/', headers, body }, new Answer(response))
  })
}

const server = createServer({ keepAliveTimeout: keepAliveMs, noDelay: true }, relay)
server.listen({ host: '127.0.0.1', port: 0, backlog }, () => {
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies Listening)
})
process.on('disconnect', () => process.exit(0))
