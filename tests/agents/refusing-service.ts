import { linksFor } from '../../src/domain/links.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { plans } from '../clients/refusal-plans.ts'
import { Service } from '../service.ts'
import { CountingProxy } from './counting-proxy.ts'

const minuteMs = 60_000
/**
 * What is left of a spent minute when an agent meets it: long enough for its first request, and no longer than a test
 * should wait.
 */
const leftOfMinuteMs = 12_000

/** The service with keys that are refused in every way, behind a proxy that counts what an agent asks. */
export class RefusingService implements AsyncDisposable {
  readonly service: Service
  /** Where the agent is sent: another one after `countAnew`, which counts from nought. */
  proxy: CountingProxy
  readonly #goAhead: (ms: number) => void
  #accounts = 0

  private constructor(service: Service, proxy: CountingProxy, goAhead: (ms: number) => void) {
    this.service = service
    this.proxy = proxy
    this.#goAhead = goAhead
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

  async countAnew(): Promise<void> {
    await this.proxy[Symbol.asyncDispose]()
    this.proxy = await CountingProxy.start(this.service.origin)
  }

  /** 401: it was revoked. */
  async revokedKey(): Promise<string> {
    const { key, stored } = await this.#account('max')
    await this.service.revoke(stored.id)
    return key
  }

  /** 402: the one request of its month is spent. */
  spentMonth(): Promise<string> {
    return this.#spent('tiny')
  }

  /** 403 for a premium profile: its plan has none. */
  async plainKey(): Promise<string> {
    return (await this.#account('free')).key
  }

  /** 429: the one request of its minute is spent, and most of that minute has gone by. */
  async spentMinute(): Promise<string> {
    const key = await this.#spent('slow')
    this.#goAhead(minuteMs - leftOfMinuteMs)
    return key
  }

  #account(plan: keyof typeof plans): ReturnType<Service['addAccount']> {
    return this.service.addAccount(`${plan}-${(this.#accounts += 1)}`, plan)
  }

  async #spent(plan: keyof typeof plans): Promise<string> {
    const { key } = await this.#account(plan)
    const { status } = await this.service.chat({}, { authorization: `Bearer ${key}` })
    if (status !== 200)
      throw new Error(`the plan ${plan} was to be spent, but its first request was answered ${status}`)
    return key
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy[Symbol.asyncDispose]()
    await this.service.stop()
  }
}
