import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../src/runtime/free-port.ts'
import { Daemon } from './daemon.ts'
import { programPath } from './programs.ts'

export interface HaProxy {
  /** The API, on any node that is ready. */
  readonly apiPort: number
  /** The database's primary, one port for each node, so that each has a link of its own. */
  readonly databasePort: number
  stop(): Promise<void>
}

export interface HaProxyTargets {
  /** The links to the nodes. */
  readonly nodePorts: readonly number[]
  readonly databases: readonly { readonly name: string; readonly port: number; readonly restPort: number }[]
}

/** Starts HAProxy as Patroni's documentation recommends: connections to a server that is not the primary are closed. */
export async function startHaProxy(folder: string, { nodePorts, databases }: HaProxyTargets): Promise<HaProxy> {
  const apiPort = await freePort()
  const databasePort = await freePort()
  const text = `global
  maxconn 4000
defaults
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  timeout check 2s
listen database
  mode tcp
  bind 127.0.0.1:${databasePort}
  timeout client 30m
  timeout server 30m
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${databases.map(({ name, port, restPort }) => `  server ${name} 127.0.0.1:${port} check port ${restPort}`).join('\n')}
listen api
  mode http
  bind 127.0.0.1:${apiPort}
  balance roundrobin
  option forwardfor
  option redispatch
  retries 2
  retry-on conn-failure
  timeout queue 5s
  option httpchk GET /ready
  http-check expect status 200
  default-server inter 500ms fall 2 rise 1
${nodePorts.map((port, index) => `  server node${index + 1} 127.0.0.1:${port} check`).join('\n')}
`
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, text)
  const daemon = new Daemon(programPath('haproxy'), ['-db', '-f', file], { cwd: folder })
  daemon.start()
  return { apiPort, databasePort, stop: () => daemon.stop() }
}
