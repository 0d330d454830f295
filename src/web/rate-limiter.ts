import type { Clock } from '../domain/clock.ts'
import { addressGroup } from '../domain/networks.ts'
import { WindowCounts } from '../domain/window-counts.ts'
import { PageRefusal } from './refusals.ts'

/** Most addresses counted at a time. */
const maxAddresses = 20_000

/** Limits the actions of one address (or account) per fixed window. */
export class RateLimiter {
  readonly #most: number
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #counts: WindowCounts

  constructor(most: number, windowMs: number, clock: Pick<Clock, 'monotonicMs'>) {
    this.#most = most
    this.#counts = new WindowCounts(windowMs, maxAddresses)
    this.#clock = clock
  }

  /** Counts one action. @throws PageRefusal `too_many` */
  take(address: string): void {
    const { count } = this.#counts.add(addressGroup(address), this.#clock.monotonicMs())
    if (count > this.#most) throw new PageRefusal('too_many')
  }
}
