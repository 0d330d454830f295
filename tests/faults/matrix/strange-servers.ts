import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { makeCertificate } from '../../providers/certificate.ts'
import type { UpstreamFault } from './upstream-faults.ts'

/** The addresses at which no connection opens. */
export class StrangeServers {
  readonly #servers: readonly Server[]
  readonly #sockets: ReadonlySet<Socket>

  private constructor(servers: readonly Server[], sockets: ReadonlySet<Socket>) {
    this.#servers = servers
    this.#sockets = sockets
  }

  static async start(): Promise<StrangeServers> {
    const sockets = new Set<Socket>()
    const servers = [createServer(), createTlsServer(makeCertificate())]
    for (const server of servers) {
      server.on('connection', (socket: Socket) => {
        sockets.add(socket)
        socket.on('error', () => {}).on('close', () => sockets.delete(socket))
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    }
    return new StrangeServers(servers, sockets)
  }

  /** The origin of a backend at such an address; `scripted` is the origin of the server that speaks HTTP. */
  origin(address: NonNullable<UpstreamFault['address']>, scripted: string): string {
    // Nothing listens there, and no test can by accident.
    if (address === 'refused') return 'http://127.0.0.1:1'
    if (address === 'plain-for-tls') return scripted.replace('http:', 'https:')
    const [silent, untrusted] = this.#servers.map((server) => (server.address() as AddressInfo).port)
    return address === 'silent-for-tls' ? `https://127.0.0.1:${silent}` : `https://localhost:${untrusted}`
  }

  async close(): Promise<void> {
    const closed = this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())))
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(closed)
  }
}
