import { existsSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { nodeEnvironment, nodeFlags } from '../bin/boot.mjs'
import { freePort } from '../src/runtime/free-port.ts'
import { clientHeaders, clientRequests, requestBytes } from './bodies.ts'
import type { RequestKind } from './bodies.ts'
import type { Child, Processes } from './processes.ts'
import type { Listening, Target } from './protocol.ts'
import { readFirstKey, svcRouterCommand, whyNoSvcRouter } from './svc-router.ts'

const startTimeoutMs = 30_000
const probeTimeoutMs = 10_000
const probePauseMs = 100
const relayConnections = 512
/** A made-up key of the right length, for gateways that do not check it. */
const nobodysKey = `sk_svc_${'0'.repeat(38)}`

/** Our program with its defaults, with what observes it, and with Claude as its backend. */
const settings = {
  'svc-router': {},
  'svc-router +metrics': { observed: 'metrics' },
  'svc-router +metrics +traces': { observed: 'metrics and traces' },
  'svc-router, Claude': { claude: true },
} as const
type SvcRouterName = keyof typeof settings

export type GatewayName = 'relay' | 'relay-again' | 'floor' | 'portkey' | SvcRouterName

/** A running gateway that has answered once. */
export interface Gateway {
  readonly name: GatewayName
  readonly pid: number
  target(kind: RequestKind): Target
  /** One request of that kind. @throws Error unless the answer is a 200 */
  probe(kind: RequestKind): Promise<string>
  stop(): Promise<void>
}

export interface StartOptions {
  readonly processes: Processes
  /** The folder for the gateways' files. */
  readonly folder: string
  readonly upstreamPort: number
  /** Maximum number of upstream connections, if the gateway has such a setting. */
  readonly connections?: number | undefined
  /** For svc-router: how many processes share the port, and its PostgreSQL database if it uses one. */
  readonly workers?: number
  readonly databaseUrl?: string
  /** For svc-router: the folder of another copy of the program. */
  readonly program?: string
}

/** Why a gateway cannot be measured on this machine; undefined if it can. */
export function whyAbsent(name: GatewayName): string | undefined {
  if (isSvcRouter(name)) return whyNoSvcRouter()
  if (name !== 'portkey' || portkeyProgram() !== undefined) return undefined
  return 'it is not installed: run `node bench/install-portkey.mjs`, or name a folder in BENCH_PORTKEY'
}

/** Starts a gateway on the core for gateways, and waits until it answers. @throws Error with the end of its log */
export async function startGateway(name: GatewayName, options: StartOptions): Promise<Gateway> {
  if (isSvcRouter(name)) return await startSvcRouter(name, options)
  if (name === 'portkey') return await startPortkey(options)
  const origin = `http://127.0.0.1:${options.upstreamPort}`
  if (name === 'floor') return await startFloor(origin, options)
  const connections = String(options.connections ?? relayConnections)
  const args = [join(import.meta.dirname, 'relay.ts'), origin, connections]
  const child = options.processes.start(name, 'gateway', args, { talks: true })
  const { port } = await child.ask<Listening>(undefined, startTimeoutMs)
  return await whenReady(name, child, port, () => ({ authorization: `Bearer ${nobodysKey}` }))
}

function isSvcRouter(name: GatewayName): name is SvcRouterName {
  return Object.hasOwn(settings, name)
}

async function startSvcRouter(name: SvcRouterName, options: StartOptions): Promise<Gateway> {
  const folder = mkdtempSync(join(options.folder, 'svc-router-'))
  const port = await freePort()
  const { upstreamPort, workers, databaseUrl, program } = options
  const args = svcRouterCommand(folder, {
    port,
    appPort: await freePort(),
    upstreamPort,
    ...settings[name],
    workers,
    usesPostgres: databaseUrl !== undefined,
    program,
  })
  const child = options.processes.start(name.replaceAll(/[ ,]/g, ''), 'gateway', args, {
    talks: false,
    // Another copy of the program sets its own.
    environment: {
      ...(program === undefined ? nodeEnvironment : {}),
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    },
  })
  return await whenReady(name, child, port, () => {
    const key = readFirstKey(folder)
    return key === undefined ? undefined : { authorization: `Bearer ${key}` }
  })
}

async function startFloor(origin: string, { processes, folder }: StartOptions): Promise<Gateway> {
  const args = [...nodeFlags, join(import.meta.dirname, 'floor.ts'), origin, folder]
  const child = processes.start('floor', 'gateway', args, { talks: true, environment: nodeEnvironment })
  const { port } = await child.ask<Listening>(undefined, startTimeoutMs)
  return await whenReady('floor', child, port, () => ({ authorization: `Bearer ${nobodysKey}` }))
}

async function startPortkey(options: StartOptions): Promise<Gateway> {
  const program = portkeyProgram()
  if (program === undefined) throw new Error('portkey is not installed.')
  const port = await freePort()
  const args = [program, `--port=${port}`, '--headless']
  const environment = { NODE_ENV: 'production' }
  const child = options.processes.start('portkey', 'gateway', args, { talks: false, environment })
  return await whenReady('portkey', child, port, () => ({
    authorization: `Bearer ${nobodysKey}`,
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `http://127.0.0.1:${options.upstreamPort}/v1`,
  }))
}

function portkeyProgram(): string | undefined {
  const folder = process.env['BENCH_PORTKEY'] ?? join(import.meta.dirname, '..', '.cache', 'portkey')
  const program = join('@portkey-ai', 'gateway', 'build', 'start-server.js')
  const places = [join(folder, 'node_modules', program), join(folder, 'build', 'start-server.js')]
  return places.find((place) => existsSync(place))
}

/** `headers` returns undefined until the gateway has created what a client needs. */
async function whenReady(
  name: GatewayName,
  child: Child,
  port: number,
  headers: () => Readonly<Record<string, string>> | undefined,
): Promise<Gateway> {
  const deadline = Date.now() + startTimeoutMs
  let trouble = 'it made no key'
  while (Date.now() < deadline) {
    if (child.exit !== undefined) throw child.failure(child.exit)
    const known = headers()
    if (known !== undefined) {
      try {
        await probe(port, known, 'chat')
        return {
          name,
          pid: child.pid,
          target: (kind) => ({ port, requests: requestBytes(kind, known) }),
          probe: (kind) => probe(port, known, kind),
          stop: () => child.stop(),
        }
      } catch (error) {
        trouble = error instanceof Error ? error.message : String(error)
      }
    }
    await delay(probePauseMs)
  }
  // If it kept running, it would take CPU from the other gateways.
  await child.stop()
  throw child.failure(`not ready after ${startTimeoutMs} ms (${trouble})`)
}

async function probe(port: number, headers: Readonly<Record<string, string>>, kind: RequestKind): Promise<string> {
  const [{ path, body }] = clientRequests(kind)
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { ...clientHeaders, ...headers },
    body,
    signal: AbortSignal.timeout(probeTimeoutMs),
  })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`it answered a ${kind} request with ${response.status}`)
  return text
}
