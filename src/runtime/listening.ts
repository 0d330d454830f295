import type { Server } from 'node:http'
import { FairShare } from './fair-share.ts'
import { addressGroup } from './networks.ts'

/** Where a server listens. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
  /** Whether other processes listen on the same port. */
  readonly sharesPort?: boolean | undefined
}

/** Resolves when the server listens. @throws the system's error if the address is unavailable */
export function listen(server: Server, { host, port, sharesPort = false }: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, reusePort: sharesPort }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** Stops listening, and resolves when all connections are closed. After `drainMs` milliseconds, closes those in use, too. */
export function closeServer(server: Server, drainMs: number): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => server.closeAllConnections(), drainMs)
    server.close(() => {
      clearTimeout(force)
      resolve()
    })
    server.closeIdleConnections()
  })
}

/** Limits open connections, and closes one at once if its address holds more than its share of them (contract 29.13). */
export function shareAmongAddresses(server: Server, connections: number): void {
  server.maxConnections = connections
  const share = new FairShare(connections)
  server.on('connection', (socket) => {
    const address = addressGroup(socket.remoteAddress ?? '')
    if (share.take(address)) socket.once('close', () => share.give(address))
    else socket.destroy()
  })
}
