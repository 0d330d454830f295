import { once } from 'node:events'
import { createServer, request as open, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Passes every request on to a service and every answer back, and counts: what an agent really asked, refusals included. */
export class CountingProxy implements AsyncDisposable {
  readonly origin: string
  /** The status of every answer to a POST so far, in order. */
  readonly statuses: number[] = []
  readonly #close: () => Promise<void>

  private constructor(origin: string, close: () => Promise<void>) {
    this.origin = origin
    this.#close = close
  }

  static async start(target: string): Promise<CountingProxy> {
    const server = createServer((request, response) => pass(target, request, response, proxy.statuses))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const proxy = new CountingProxy(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    })
    return proxy
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#close()
  }
}

function pass(target: string, request: IncomingMessage, response: ServerResponse, statuses: number[]): void {
  const { method = 'GET', url = '/', headers } = request
  const onward = open(`${target}${url}`, { method, headers, agent: false }, (answer) => {
    if (method === 'POST') statuses.push(answer.statusCode!)
    response.writeHead(answer.statusCode!, answer.rawHeaders)
    answer.pipe(response)
    answer.once('error', () => response.destroy())
  })
  onward.once('error', () => response.destroy())
  response.once('close', () => onward.destroy())
  request.pipe(onward)
}
