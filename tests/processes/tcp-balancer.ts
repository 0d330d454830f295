import { once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Balancer } from './rolling-restarts.ts'

const checkEveryMs = 40
const checkLimitMs = 1_000
/** Longer than a check takes while other tests use the processors. */
const noticeMs = 500

/** A minimal proxy: passes connections on to nodes whose `/ready` answers 200, in turn. */
export async function startTcpBalancer(nodePorts: readonly number[]): Promise<Balancer> {
  const ready = new Set<number>()
  const sockets = new Set<Socket>()
  const stopping = new AbortController()
  const check = async (port: number): Promise<void> => {
    if (await isReady(port)) ready.add(port)
    else ready.delete(port)
  }
  const watch = async (port: number): Promise<void> => {
    while (!stopping.signal.aborted) {
      await check(port)
      await new Promise((resolve) => setTimeout(resolve, checkEveryMs))
    }
  }
  let next = 0
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const among = nodePorts.filter((port) => ready.has(port))
    const node = connect({ port: among[next++ % among.length] ?? 0, host: '127.0.0.1', allowHalfOpen: true })
    for (const [from, to] of [
      [client, node],
      [node, client],
    ] as const) {
      sockets.add(from)
      from.setNoDelay(true)
      from.on('error', () => to.destroy())
      from.on('close', () => sockets.delete(from))
      from.pipe(to)
    }
  })
  await Promise.all(nodePorts.map(check))
  const watches = nodePorts.map(watch)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    noticeMs,
    async stop() {
      stopping.abort()
      server.close()
      for (const socket of sockets) socket.destroy()
      await Promise.all(watches)
    },
  }
}

function isReady(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(
      { port, host: '127.0.0.1', path: '/ready', agent: false, timeout: checkLimitMs },
      (answer) => {
        answer.resume()
        resolve(answer.statusCode === 200)
      },
    )
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => resolve(false))
    asked.end()
  })
}
