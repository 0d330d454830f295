import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy in front of a database, for outages: it can stop answering, or refuse connections. */
export interface DatabaseProxy {
  /** The URL of the database through the proxy. */
  readonly url: string
  /** Holds all bytes back, in both directions, until `heal`. */
  stall(): void
  /** Closes all connections, and refuses new ones until `heal`. */
  cut(): void
  heal(): void
  close(): Promise<void>
}

export async function proxyDatabase(target: string): Promise<DatabaseProxy> {
  const { hostname, port } = new URL(target)
  const pairs = new Set<readonly [Socket, Socket]>()
  let state: 'open' | 'stalled' | 'cut' = 'open'
  const server = createServer((client) => {
    if (state === 'cut') {
      client.destroy()
      return
    }
    const upstream = connect(Number(port), hostname)
    const pair = [client, upstream] as const
    pairs.add(pair)
    client.pipe(upstream).pipe(client)
    for (const [own, other] of [pair, pair.toReversed() as [Socket, Socket]]) {
      own.on('error', () => other.destroy())
      own.on('close', () => {
        other.destroy()
        pairs.delete(pair)
      })
    }
    if (state === 'stalled') for (const socket of pair) socket.pause()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(target)
  url.port = String((server.address() as AddressInfo).port)
  const destroyAll = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.destroy()
  }
  return {
    url: url.href,
    stall() {
      state = 'stalled'
      for (const pair of pairs) for (const socket of pair) socket.pause()
    },
    cut() {
      state = 'cut'
      destroyAll()
    },
    heal() {
      if (state === 'stalled') for (const pair of pairs) for (const socket of pair) socket.resume()
      state = 'open'
    },
    async close() {
      destroyAll()
      server.close()
      await once(server, 'close')
    },
  }
}
