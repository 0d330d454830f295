import type { Offer } from '../../domain/billing.ts'
import type { EventLog } from '../../domain/events.ts'
import type { Clock } from '../../runtime/clock.ts'
import { BillingFailure, type Billing } from './ports.ts'

/** How long a page waits for prices; a later answer is used by the next page. */
const maxWaitMs = 1_000
/** Pause after a failed request for prices. */
const pauseMs = 30_000

export interface OfferCacheDeps {
  /** Undefined if plans are not sold. */
  readonly billing: Pick<Billing, 'offers'> | undefined
  readonly clock: Clock
  readonly log: EventLog
}

/**
 * Plan prices for public pages and `GET /pricing`: at most one request to the payment provider at a time, none for 30 s
 * after a failure, and no caller waits longer than a second. If prices are late or unavailable, it returns the last
 * known ones, or none (contract 17.8).
 */
export class OfferCache {
  readonly #deps: OfferCacheDeps
  #known: readonly Offer[] = []
  #asking: Promise<void> | undefined
  #isSlow = false
  #pauseUntilMs = Number.NEGATIVE_INFINITY

  constructor(deps: OfferCacheDeps) {
    this.#deps = deps
  }

  async read(): Promise<readonly Offer[]> {
    const { billing, clock } = this.#deps
    if (billing === undefined || clock.monotonicMs() < this.#pauseUntilMs) return this.#known
    this.#asking ??= this.#ask(billing)
    if (this.#isSlow) return this.#known
    const late = Promise.withResolvers<void>()
    const timer = clock.after(maxWaitMs, () => {
      this.#isSlow = this.#asking !== undefined
      late.resolve()
    })
    await Promise.race([this.#asking, late.promise])
    timer.cancel()
    return this.#known
  }

  async #ask(billing: Pick<Billing, 'offers'>): Promise<void> {
    const { clock, log } = this.#deps
    try {
      this.#known = await billing.offers()
    } catch (error) {
      this.#pauseUntilMs = clock.monotonicMs() + pauseMs
      if (error instanceof BillingFailure) log({ event: 'billing_failing', reason: error.trouble })
      else throw error
    } finally {
      this.#asking = undefined
      this.#isSlow = false
    }
  }
}
