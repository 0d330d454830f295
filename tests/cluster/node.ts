import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../src/runtime/free-port.ts'
import type { SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { type DatabaseProxy, proxyDatabase } from '../database-proxy.ts'
import { fakeTimeLibrary } from '../fake-time.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { openTcpLink, type TcpLink } from '../tcp-link.ts'

const startAgainMs = 500
/** Longer than any outage of the database. */
const startLimitMs = 180_000

export interface NodeOptions {
  readonly folder: string
  readonly databaseUrl: string
  readonly provider: SimulatedProvider
  readonly settings: object
  readonly env: NodeJS.ProcessEnv
  /** Whether its clock can be changed. */
  readonly hasFakeTime: boolean
}

/** A node of the service, with a link of its own to the database and one from the load balancer. */
export class ClusterNode {
  readonly toDatabase: DatabaseProxy
  readonly fromBalancer: TcpLink
  readonly #service: ServiceProcess
  readonly #clockFile: string
  #isWanted = true

  private constructor(
    service: ServiceProcess,
    { toDatabase, fromBalancer }: { toDatabase: DatabaseProxy; fromBalancer: TcpLink },
    clockFile: string,
  ) {
    this.#service = service
    this.toDatabase = toDatabase
    this.fromBalancer = fromBalancer
    this.#clockFile = clockFile
  }

  /** Creates a node without starting it. */
  static async create({
    folder,
    databaseUrl,
    provider,
    settings,
    env,
    hasFakeTime,
  }: NodeOptions): Promise<ClusterNode> {
    mkdirSync(folder, { recursive: true })
    const toDatabase = await proxyDatabase(databaseUrl)
    const fromBalancer = await openTcpLink(await freePort())
    const clockFile = join(folder, 'clock')
    const clock = {
      LD_PRELOAD: fakeTimeLibrary,
      FAKETIME_TIMESTAMP_FILE: clockFile,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
    const ownEnv = { ...env, DATABASE_URL: toDatabase.url, ...(hasFakeTime ? clock : {}) }
    const service = new ServiceProcess(folder, [provider], settings, ownEnv)
    const node = new ClusterNode(service, { toDatabase, fromBalancer }, clockFile)
    node.setClock(0)
    return node
  }

  /** The last lines of its log. */
  get log(): string {
    return this.#service.errors
  }

  /** Starts it, again and again until it starts, as a supervisor does. */
  async start(): Promise<void> {
    const giveUpAtMs = performance.now() + startLimitMs
    while (this.#isWanted) {
      try {
        await this.#service.start()
        this.fromBalancer.target = this.#service.port
        return
      } catch (error) {
        if (performance.now() > giveUpAtMs) throw error
        await sleep(startAgainMs)
      }
    }
  }

  async kill(): Promise<void> {
    await this.#service.stop('SIGKILL')
  }

  pause(): void {
    this.#service.running.kill('SIGSTOP')
  }

  resume(): void {
    this.#service.running.kill('SIGCONT')
  }

  /** Sets its wall clock to this many seconds after the machine's. */
  setClock(aheadSeconds: number): void {
    writeFileSync(this.#clockFile, `${aheadSeconds < 0 ? '' : '+'}${aheadSeconds}\n`)
  }

  async isReady(): Promise<boolean> {
    try {
      const answer = await fetch(`http://127.0.0.1:${this.#service.port}/ready`, { signal: AbortSignal.timeout(1_000) })
      return answer.ok
    } catch {
      return false
    }
  }

  async stop(): Promise<void> {
    this.#isWanted = false
    await this.#service.destroy()
    await this.toDatabase.close()
    await this.fromBalancer.close()
  }
}
