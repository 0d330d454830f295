import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { RunningService } from '../agents/running-service.ts'
import type { Model, ModelServer, RunningServer } from './model-server.ts'
import type { Endpoint } from './outcome.ts'

const storedWithinMs = 5_000
const retryEveryMs = 250

/** The start of every answer of the second, simulated backend. */
export const otherAnswer = 'This is a simulated answer from other.'

/** One server and a svc-router in front of it, with a second backend for requests that the server does not support. */
export class World implements AsyncDisposable {
  readonly server: ModelServer
  readonly running: RunningServer
  readonly #service: RunningService
  readonly #opened: AsyncDisposableStack

  private constructor(
    server: ModelServer,
    running: RunningServer,
    service: RunningService,
    opened: AsyncDisposableStack,
  ) {
    this.server = server
    this.running = running
    this.#service = service
    this.#opened = opened
  }

  static async start(server: ModelServer, model: Model): Promise<World> {
    await using opened = new AsyncDisposableStack()
    const folder = opened.adopt(mkdtempSync(join(tmpdir(), `svc-router-${server.name}-`)), (path) =>
      rmSync(path, { recursive: true, force: true }),
    )
    mkdirSync(join(folder, 'server'))
    const running = await server.start(model, join(folder, 'server'))
    for (const process of running.processes) opened.use(process)
    const other = await startSimulatedProvider({ name: 'other' })
    opened.defer(() => other.close())
    const config = `
providers:
  server: { preset: ${server.preset}, base_url: '${running.baseUrl}'${server.format === undefined ? '' : `, format: ${server.format}`} }
  other: { preset: custom, base_url: '${other.baseUrl}' }
backends:
  tiny: { provider: server, model: '${running.model}'${running.key === undefined ? '' : ', credential_env: SERVER_KEY'} }
  other: { provider: other, model: other, context_window: 100000, capabilities: { image_input: true } }
profiles:
  test/alone: { backends: [tiny] }
  test/first: { backends: [tiny, other] }
`
    const variables = running.key === undefined ? {} : { SERVER_KEY: running.key }
    const service = opened.use(await RunningService.start(config, variables))
    return new World(server, running, service, opened.move())
  }

  /** The server itself. */
  get direct(): Endpoint {
    return { baseUrl: this.running.baseUrl, key: this.running.key ?? 'none', model: this.running.model }
  }

  /** svc-router with the server as its only backend, or with the second backend after it. */
  routed(profile: 'test/alone' | 'test/first' = 'test/alone'): Endpoint {
    return { baseUrl: this.#service.baseUrl, key: this.#service.key, model: profile }
  }

  /** The server's errors for the latest request, as the owner of the backend sees them. Waits until they are stored. */
  async latestProviderErrors(): Promise<readonly string[]> {
    const deadline = performance.now() + storedWithinMs
    for (;;) {
      const [latest] = (await this.#service.command('requests', '--limit', '1')) as { id: string }[]
      if (latest === undefined) throw new Error('no request was recorded')
      const record = (await this.#service.command('request', latest.id)) as { providerErrors?: { text: string }[] }
      if (record.providerErrors !== undefined) return record.providerErrors.map(({ text }) => text)
      if (performance.now() > deadline) return []
      await sleep(retryEveryMs)
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#opened.disposeAsync()
  }
}
