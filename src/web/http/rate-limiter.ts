import type { Clock } from '../../runtime/clock.ts'
import { addressGroup } from '../../runtime/networks.ts'
import { WindowCounts } from '../../runtime/window-counts.ts'
import { PageError } from './page-error.ts'

/** Maximum number of addresses counted at a time. */
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

  /** Counts one action. @throws PageError `too_many` */
  take(address: string): void {
    const { count } = this.#counts.add(addressGroup(address), this.#clock.monotonicMs())
    if (count > this.#most) throw new PageError('too_many')
  }
}
