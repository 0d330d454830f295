import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll } from 'vitest'
import type { SimulatedProvider } from '../src/simulation/providers/simulated-provider.ts'
import { Service, type ServiceOptions } from './service.ts'

/** How long a finished test may take until its requests are logged. */
const settledWithinMs = 200
const pollMs = 5

/**
 * Shares one service among the tests of a file, because each start takes 80 ms of CPU time. Call it at the top of the file.
 * It returns a function for each test to call first: the test gets its own account and key, no events, and providers
 * without a script that count from 0. The service remembers failures, so after a test in which a backend failed, or a
 * client disconnected, the next test gets another service. The end of the file stops it.
 */
export function shareService(options: ServiceOptions = {}): () => Promise<Service> {
  let shared: Service | undefined
  let providers: readonly CountedProvider[] = []
  let number = 0
  const stop = async (): Promise<void> => {
    await shared?.stop()
    shared = undefined
  }
  afterAll(stop)
  return async () => {
    if (shared !== undefined && (await isSettled(shared)) && !hasFailed(shared, providers)) {
      shared.events.length = 0
      for (const provider of providers) provider.countFromZero()
      return Object.assign(shared, await shared.addAccount(`tester ${(number += 1)}`, 'max'))
    }
    await stop()
    const counted: CountedProvider[] = []
    shared = await Service.start(options, (provider) => {
      const wrapped = new CountedProvider(provider)
      counted.push(wrapped)
      return wrapped
    })
    providers = counted
    return shared
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
  const isUsual = events.every((event) => event.event === 'started' || (event.event === 'request' && !event.failed))
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
