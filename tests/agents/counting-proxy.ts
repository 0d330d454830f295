import { once } from 'node:events'
import { createServer, request as open, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One answer to a POST: its status, its arrival, and the wait that `Retry-After` requests. */
interface CountedAnswer {
  readonly status: number
  readonly atMs: number
  readonly retryAfterSeconds: number | undefined
}

/**
 * Forwards every request to a service and every answer to the client, and counts them: all requests of an agent,
 * including rejected ones.
 */
export class CountingProxy implements AsyncDisposable {
  readonly origin: string
  /** Every answer to a POST so far, in order. */
  readonly answers: CountedAnswer[] = []
  readonly #close: () => Promise<void>

  private constructor(origin: string, close: () => Promise<void>) {
    this.origin = origin
    this.#close = close
  }

  static async start(target: string): Promise<CountingProxy> {
    const server = createServer((request, response) => pass(target, request, response, proxy.answers))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const proxy = new CountingProxy(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    })
    return proxy
  }

  get baseUrl(): string {
    return `${this.origin}/v1`
  }

  get statuses(): number[] {
    return this.answers.map(({ status }) => status)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#close()
  }
}

function pass(target: string, request: IncomingMessage, response: ServerResponse, answers: CountedAnswer[]): void {
  const { method = 'GET', url = '/', headers } = request
  const onward = open(`${target}${url}`, { method, headers, agent: false }, (answer) => {
    if (method === 'POST') {
      const retryAfter = answer.headers['retry-after']
      const retryAfterSeconds = retryAfter === undefined ? undefined : Number(retryAfter)
      answers.push({ status: answer.statusCode!, atMs: performance.now(), retryAfterSeconds })
    }
    response.writeHead(answer.statusCode!, answer.rawHeaders)
    answer.pipe(response)
    answer.once('error', () => response.destroy())
  })
  onward.once('error', () => response.destroy())
  response.once('close', () => onward.destroy())
  request.pipe(onward)
}
