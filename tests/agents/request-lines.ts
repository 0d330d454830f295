import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** Forwards every byte to the service and records the first line of every request of an agent. */
export class RequestLines implements AsyncDisposable {
  /** Method and path of every request, in order: `GET /v1/responses`. */
  readonly seen: string[] = []
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(target: URL) {
    this.#server = createServer((caller) => this.#pass(caller, target))
  }

  static async start(baseUrl: string): Promise<RequestLines> {
    const lines = new RequestLines(new URL(baseUrl))
    lines.#server.listen(0, '127.0.0.1')
    await once(lines.#server, 'listening')
    return lines
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  #pass(caller: Socket, target: URL): void {
    const service = connect(Number(target.port), target.hostname)
    for (const socket of [caller, service]) {
      this.#sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        this.#sockets.delete(socket)
        caller.destroy()
        service.destroy()
      })
    }
    caller.on('data', (chunk: Buffer) => {
      const line = /^([A-Z]+ \S+) HTTP\/1\.1\r\n/.exec(chunk.toString('latin1'))
      if (line !== null) this.seen.push(line[1]!)
    })
    caller.pipe(service)
    service.pipe(caller)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
