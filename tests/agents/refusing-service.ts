import { linksFor } from '../../src/domain/links.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { plans } from '../clients/refusal-plans.ts'
import { Service } from '../service.ts'
import { CountingProxy } from './counting-proxy.ts'

const minuteMs = 60_000
/**
 * The rest of the used-up minute when an agent sends its first request: long enough for that request, and not longer
 * than a test should wait.
 */
const restOfMinuteMs = 12_000

/** The service with keys for every kind of rejection, behind a proxy that counts the requests of an agent. */
export class RefusingService implements AsyncDisposable {
  readonly service: Service
  /** The agent connects to this proxy. `restartCount` replaces it with one that counts from zero. */
  proxy: CountingProxy
  readonly #advance: (ms: number) => void
  #accounts = 0

  private constructor(service: Service, proxy: CountingProxy, advance: (ms: number) => void) {
    this.service = service
    this.proxy = proxy
    this.#advance = advance
  }

  static async start(): Promise<RefusingService> {
    let aheadMs = 0
    const clock = systemClock({ wallMs: () => Date.now() + aheadMs, monotonicMs: () => performance.now() })
    const service = await Service.start({ formats: ['openai-chat'], settings: { plans }, clock })
    return new RefusingService(service, await CountingProxy.start(service.origin), (ms) => {
      aheadMs += ms
    })
  }

  get links(): ReturnType<typeof linksFor> {
    return linksFor(this.service.config.appUrl)
  }

  /** How many requests have reached the backend. */
  served(): number {
    return this.service.providers[0]!.counts().requests
  }

  async restartCount(): Promise<void> {
    await this.proxy[Symbol.asyncDispose]()
    this.proxy = await CountingProxy.start(this.service.origin)
  }

  /** For a 401: a revoked key. */
  async revokedKey(): Promise<string> {
    const { key, stored } = await this.#account('max')
    await this.service.revoke(stored.id)
    return key
  }

  /** For a 402: the key of an account that has used the one request of its month. */
  spentMonth(): Promise<string> {
    return this.#spent('tiny')
  }

  /** For a 403 with a premium profile: the key of an account whose plan does not include it. */
  async plainKey(): Promise<string> {
    return (await this.#account('free')).key
  }

  /** For a 429: the key of an account that has used the one request of its minute. Most of that minute is over. */
  async spentMinute(): Promise<string> {
    const key = await this.#spent('slow')
    this.#advance(minuteMs - restOfMinuteMs)
    return key
  }

  #account(plan: keyof typeof plans): ReturnType<Service['addAccount']> {
    return this.service.addAccount(`${plan}-${(this.#accounts += 1)}`, plan)
  }

  async #spent(plan: keyof typeof plans): Promise<string> {
    const { key } = await this.#account(plan)
    const { status } = await this.service.chat({}, { authorization: `Bearer ${key}` })
    if (status !== 200)
      throw new Error(`the first request on the plan ${plan} was to use its quota, but was answered with ${status}`)
    return key
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy[Symbol.asyncDispose]()
    await this.service.stop()
  }
}
