import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'

/** A TCP connection to a server on 127.0.0.1 that can fail: for partitions and slow servers. */
export interface TcpLink {
  readonly port: number
  /** Connections from now on go to this port. */
  target: number
  /** Connections that are open now, that were ever tried, and messages from clients. */
  readonly open: number
  readonly tried: number
  readonly messages: number
  /** Holds all bytes back, in both directions, until `heal`. They arrive then, as after a partition. */
  stall(): void
  /** Closes all connections, and refuses new ones until `heal`. */
  cut(): void
  /** Delays each answer until `heal`. */
  delay(ms: number): void
  heal(): void
  close(): Promise<void>
}

export async function openTcpLink(target: number): Promise<TcpLink> {
  const pairs = new Set<readonly [Socket, Socket]>()
  let state: 'open' | 'stalled' | 'cut' = 'open'
  let delayMs = 0
  let tried = 0
  let messages = 0
  const server = createServer({ noDelay: true }, (client) => {
    tried += 1
    if (state === 'cut') {
      client.destroy()
      return
    }
    const upstream = connect({ port: link.target, host: '127.0.0.1', noDelay: true })
    const pair = [client, upstream] as const
    pairs.add(pair)
    client.on('data', () => {
      messages += 1
    })
    client.pipe(upstream)
    upstream.pipe(delaying(() => delayMs)).pipe(client)
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
  const destroyAll = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.destroy()
  }
  const link: TcpLink = {
    port: (server.address() as AddressInfo).port,
    target,
    get open() {
      return pairs.size
    },
    get tried() {
      return tried
    },
    get messages() {
      return messages
    },
    stall() {
      state = 'stalled'
      for (const pair of pairs) for (const socket of pair) socket.pause()
    },
    cut() {
      state = 'cut'
      destroyAll()
    },
    delay(ms) {
      delayMs = ms
    },
    heal() {
      if (state === 'stalled') for (const pair of pairs) for (const socket of pair) socket.resume()
      state = 'open'
      delayMs = 0
    },
    async close() {
      destroyAll()
      server.close()
      await once(server, 'close')
    },
  }
  return link
}

function delaying(delayMs: () => number): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (delayMs() === 0) done(null, chunk)
      else setTimeout(() => done(null, chunk), delayMs()).unref()
    },
  })
}
