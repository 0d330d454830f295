import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, onTestFinished } from 'vitest'
import type { SimulatedProvider } from '../src/simulation/providers/simulated-provider.ts'
import { Service, type ServiceOptions } from './service.ts'

/** How long a finished test may take until its requests are logged. */
const settledWithinMs = 200
const pollMs = 5
/** Events of a service in which nothing has failed. The limit of descriptors is the machine's. */
const usual: readonly string[] = ['started', 'descriptor_limit_low', 'audit_checkpoint']

/**
 * Shares services among the tests of a file, one for each set of options, because each start takes 80 ms of CPU time.
 * Call it at the top of the file. It returns a function for each test to call first: the test gets its own account and
 * key, no events, and providers without a script that count from 0. A service remembers failures, so the next test gets
 * another service after one in which a backend failed, a client disconnected, or the database was changed. A test with
 * a clock or a random source has a service of its own. The end of the file stops them.
 */
export function shareServices(): (options?: ServiceOptions) => Promise<Service> {
  const byOptions = new Map<string, SharedService>()
  afterAll(async () => {
    for (const shared of byOptions.values()) await shared.stop()
  })
  return async (options = {}) => {
    if (options.clock !== undefined || options.random !== undefined) {
      const own = await Service.start(options)
      onTestFinished(() => own.stop())
      return own
    }
    const key = JSON.stringify(options)
    const shared = byOptions.get(key) ?? new SharedService(options)
    byOptions.set(key, shared)
    return shared.lend()
  }
}

/** Like `shareServices`, if all tests of a file use the same options. */
export function shareService(options: ServiceOptions = {}): () => Promise<Service> {
  const shared = new SharedService(options)
  afterAll(() => shared.stop())
  return () => shared.lend()
}

class SharedService {
  readonly #options: ServiceOptions
  #service: Service | undefined
  #providers: CountedProvider[] = []

  constructor(options: ServiceOptions) {
    this.#options = options
  }

  async lend(): Promise<Service> {
    const service = this.#service
    if (service?.isChanged === false && (await isSettled(service)) && !hasFailed(service, this.#providers)) {
      service.events.length = 0
      for (const provider of this.#providers) provider.countFromZero()
      return Object.assign(service, await service.addAccount('tester', 'max'))
    }
    await this.stop()
    this.#providers = []
    return (this.#service = await Service.start(this.#options, (provider) => {
      const counted = new CountedProvider(provider)
      this.#providers.push(counted)
      return counted
    }))
  }

  async stop(): Promise<void> {
    await this.#service?.stop()
    this.#service = undefined
  }
}

/** Whether all requests have ended, and all calls to backends belong to them. */
async function isSettled({ events, providers }: Service): Promise<boolean> {
  const isSo = (): boolean => {
    const attempts = events.map((event) => (event.event === 'request' ? event.attempts : 0))
    const counts = providers.map((provider) => provider.counts())
    return counts.every(({ open }) => open === 0) && sum(attempts) === sum(counts.map(({ requests }) => requests))
  }
  for (let waitedMs = 0; waitedMs < settledWithinMs && !isSo(); waitedMs += pollMs) await sleep(pollMs)
  return isSo()
}

function hasFailed({ events }: Service, providers: readonly CountedProvider[]): boolean {
  const isUsual = events.every((each) => usual.includes(each.event) || (each.event === 'request' && !each.failed))
  return !isUsual || providers.some((provider) => provider.hasFailed)
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

/** A provider whose counts can begin again. */
class CountedProvider implements SimulatedProvider {
  readonly name: string
  readonly port: number
  readonly baseUrl: string
  readonly #provider: SimulatedProvider
  #before: ReturnType<SimulatedProvider['counts']>
  #lastCaptured: unknown
  #hasFailures = false

  constructor(provider: SimulatedProvider) {
    this.name = provider.name
    this.port = provider.port
    this.baseUrl = provider.baseUrl
    this.#provider = provider
    this.#before = provider.counts()
  }

  /** Whether it was scripted to fail, or one of its clients disconnected early. */
  get hasFailed(): boolean {
    return this.#hasFailures || this.#provider.counts().aborted > 0
  }

  script(steps: Parameters<SimulatedProvider['script']>[0]): void {
    if (steps.some((step) => step.do !== 'answer')) this.#hasFailures = true
    this.#provider.script(steps)
  }

  counts(): ReturnType<SimulatedProvider['counts']> {
    const now = this.#provider.counts()
    const { requests, connections } = this.#before
    return { ...now, requests: now.requests - requests, connections: now.connections - connections }
  }

  captured(): ReturnType<SimulatedProvider['captured']> {
    const all = this.#provider.captured()
    return all.slice(all.findIndex((request) => request === this.#lastCaptured) + 1)
  }

  countFromZero(): void {
    this.#before = this.#provider.counts()
    this.#lastCaptured = this.#provider.captured().at(-1)
    this.#provider.script([])
  }

  close(): Promise<void> {
    return this.#provider.close()
  }
}
