import { createServer } from 'node:http'
import type { RequestListener, Server } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Server as TcpServer, Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { UpstreamError } from '../../src/domain/upstream.ts'
import type { Backend, UpstreamCall, UpstreamHead } from '../../src/gateway/ports.ts'
import { createBackend } from '../../src/providers/backend.ts'
import type { BackendSpec } from '../../src/providers/backend.ts'
import { createUpstreamPools } from '../../src/providers/http/upstream-pools.ts'
import type { UpstreamPools, UpstreamPoolsOptions } from '../../src/providers/http/upstream-pools.ts'
import { vendors } from '../../src/providers/registry.ts'
import { defaultTimeouts } from '../../src/providers/timeouts.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import type { SimulatedOptions, SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'

/** All events of one call, in order. */
export class Recording {
  readonly steps: string[] = []
  head: UpstreamHead | undefined
  chunks: Buffer[] = []
  bytes = 0
  error: UpstreamError | undefined
  call!: UpstreamCall
  readonly ended: Promise<void>
  #end!: () => void
  #onFirst: (() => void) | undefined

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString('utf8')
  }

  firstData(): Promise<void> {
    return this.bytes > 0 ? Promise.resolve() : new Promise((resolve) => (this.#onFirst = resolve))
  }

  onHead(head: UpstreamHead): void {
    this.steps.push('head')
    this.head = head
  }

  onData(chunk: Buffer): void {
    if (this.steps.at(-1) !== 'data') this.steps.push('data')
    this.chunks.push(Buffer.from(chunk))
    this.bytes += chunk.length
    this.#onFirst?.()
  }

  onEnd(): void {
    this.steps.push('end')
    this.#end()
  }

  onError(error: UpstreamError): void {
    this.steps.push('error')
    this.error = error
    this.#end()
  }
}

export const bugs: unknown[] = []

/** Pools that are closed when the test ends. */
export function openPools(options: Partial<UpstreamPoolsOptions> = {}): UpstreamPools {
  const pools = createUpstreamPools({
    clock: systemClock(),
    version: '0.0.0-test',
    onBug: (error) => bugs.push(error),
    ...options,
  })
  onTestFinished(() => pools.close(0))
  return pools
}

export function openBackend(pools: UpstreamPools, baseUrl: string, spec: Partial<BackendSpec> = {}): Backend {
  return createBackend(
    {
      id: 'test',
      failureDomain: 'test',
      format: 'openai-chat',
      model: 'model-1',
      simulated: false,
      timeouts: defaultTimeouts(false),
      dialect: vendors.custom.dialect,
      baseUrl,
      authHeader: 'authorization',
      ...spec,
    },
    pools,
  )
}

export const madeUpCredential = new Secret('made-up-credential-0001')

/** Starts a call and records it. */
export function record(
  backend: Backend,
  body: string | Uint8Array = '{"model":"model-1","messages":[]}',
  stream = false,
): Recording {
  const recording = new Recording()
  recording.call = backend.call({ body, stream, requestId: 'req_test' }, recording)
  return recording
}

/** Starts a call and waits for its end. */
export async function run(backend: Backend, body?: string | Uint8Array, stream = false): Promise<Recording> {
  const recording = record(backend, body, stream)
  await recording.ended
  return recording
}

/** Starts an HTTP server on a free port, which is closed when the test ends. */
export async function serveHttp(
  listener: RequestListener,
): Promise<{ baseUrl: string; server: Server; sockets: Set<Socket> }> {
  const server = createServer({ keepAliveTimeout: 60_000 }, listener)
  const sockets = trackSockets(server)
  const port = await listen(server)
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return { baseUrl: `http://127.0.0.1:${port}/v1`, server, sockets }
}

/** Starts a TCP server in the same way. */
export async function serveTcp(
  onSocket: (socket: Socket) => void,
): Promise<{ baseUrl: string; port: number; sockets: Set<Socket> }> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => socket.destroy())
    onSocket(socket)
  })
  const sockets = trackSockets(server)
  const port = await listen(server)
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  )
  return { baseUrl: `http://127.0.0.1:${port}/v1`, port, sockets }
}

export async function simulate(options: Partial<SimulatedOptions> = {}): Promise<SimulatedProvider> {
  const provider = await startSimulatedProvider({ name: 'alpha', ...options })
  onTestFinished(() => provider.close())
  return provider
}

/** Waits until the condition holds, at most `limitMs`. */
export async function until(holds: () => boolean, limitMs = 5_000): Promise<void> {
  const endMs = performance.now() + limitMs
  while (!holds()) {
    if (performance.now() > endMs) throw new Error(`It did not come true within ${limitMs} ms.`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

export function listen(server: Server | TcpServer): Promise<number> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
}

function trackSockets(server: Server | TcpServer): Set<Socket> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  return sockets
}
