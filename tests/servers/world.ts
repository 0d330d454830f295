import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/providers/simulated.ts'
import { RunningService } from '../agents/running-service.ts'
import type { Model, ModelServer, RunningServer } from './model-server.ts'
import type { Place } from './outcome.ts'

/** What the simulated backend behind the server says. */
export const otherSays = 'This is a simulated answer from other.'

/** One server and a svc-router in front of it, with a second backend that takes what the server cannot. */
export class World implements AsyncDisposable {
  readonly server: ModelServer
  readonly running: RunningServer
  readonly #service: RunningService
  readonly #other: SimulatedProvider
  readonly #folder: string

  private constructor(
    server: ModelServer,
    running: RunningServer,
    parts: { service: RunningService; other: SimulatedProvider; folder: string },
  ) {
    this.server = server
    this.running = running
    this.#service = parts.service
    this.#other = parts.other
    this.#folder = parts.folder
  }

  static async start(server: ModelServer, model: Model): Promise<World> {
    const folder = mkdtempSync(join(tmpdir(), `svc-router-${server.name}-`))
    mkdirSync(join(folder, 'server'))
    const running = await server.start(model, join(folder, 'server'))
    const other = await startSimulatedProvider({ name: 'other' })
    const config = `
providers:
  server: { preset: ${server.preset}, base_url: '${running.baseUrl}' }
  other: { preset: custom, base_url: '${other.baseUrl}' }
backends:
  tiny: { provider: server, model: '${running.model}'${running.key === undefined ? '' : ', credential_env: SERVER_KEY'} }
  other: { provider: other, model: other, context_window: 100000, capabilities: { image_input: true } }
profiles:
  test/alone: { backends: [tiny] }
  test/first: { backends: [tiny, other] }
`
    const variables = running.key === undefined ? {} : { SERVER_KEY: running.key }
    const service = await RunningService.start(config, variables)
    return new World(server, running, { service, other, folder })
  }

  /** The server itself. */
  get direct(): Place {
    return { baseUrl: this.running.baseUrl, key: this.running.key ?? 'none', model: this.running.model }
  }

  /** svc-router with the server as its only backend, or with the other one behind it. */
  routed(profile: 'test/alone' | 'test/first' = 'test/alone'): Place {
    return { baseUrl: this.#service.baseUrl, key: this.#service.key, model: profile }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service[Symbol.asyncDispose]()
    await this.#other.close()
    for (const process of this.running.processes.toReversed()) await process.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
