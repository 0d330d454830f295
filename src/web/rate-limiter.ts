import type { Clock } from '../domain/clock.ts'
import { WindowCounts } from '../domain/window-counts.ts'
import { PageRefusal } from './refusals.ts'

/** Addresses counted at once. */
const maxAddresses = 20_000

/** Counts what one address does, in fixed windows. */
export class RateLimiter {
  readonly #most: number
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #counts: WindowCounts

  constructor(most: number, windowMs: number, clock: Pick<Clock, 'monotonicMs'>) {
    this.#most = most
    this.#counts = new WindowCounts(windowMs, maxAddresses)
    this.#clock = clock
  }

  /** Counts one. @throws PageRefusal `too_many` */
  take(address: string): void {
    const { count } = this.#counts.add(networkOf(address), this.#clock.monotonicMs())
    if (count > this.#most) throw new PageRefusal('too_many')
  }
}

/** Of an IPv6 address the half that is one customer's: the other half is theirs to choose. */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.startsWith('::ffff:')) return address
  const [head = '', tail] = address.split('::')
  const before = head.split(':').filter((part) => part !== '')
  const missing = tail === undefined ? 0 : 8 - before.length - tail.split(':').filter((part) => part !== '').length
  return [...before, ...Array<string>(Math.max(0, missing)).fill('0'), ...(tail ?? '').split(':')].slice(0, 4).join(':')
}
