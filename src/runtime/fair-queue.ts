import type { Clock, Timer } from './clock.ts'
import type { FairShare } from './fair-share.ts'

interface Waiting {
  readonly grant: (hasTurn: boolean) => void
  readonly timer: Timer
}

/** A place in a queue. */
export interface Turn {
  /** Whether the turn came in time. */
  readonly came: Promise<boolean>
  /** Leaves the queue. */
  leave(): void
}

/**
 * Requests that wait for room, at most for a given time each. Accounts take turns, whatever the number of requests that
 * each has waiting (contract 29.15).
 */
export class FairQueue {
  readonly #clock: Clock
  /** Limits how many wait, in total and of one account. */
  readonly #places: FairShare
  /** The account whose turn is next is first. */
  readonly #byAccount = new Map<string, Set<Waiting>>()

  constructor(clock: Clock, places: FairShare) {
    this.#clock = clock
    this.#places = places
  }

  get isEmpty(): boolean {
    return this.#byAccount.size === 0
  }

  /** Takes a place for at most this long; undefined if the account has no place left. */
  wait(account: string, longestMs: number): Turn | undefined {
    if (longestMs <= 0 || !this.#places.take(account)) return undefined
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const end = (hasTurn: boolean): void => {
      if (!this.#remove(account, waiting)) return
      waiting.timer.cancel()
      resolve(hasTurn)
    }
    const timer = this.#clock.after(longestMs, () => end(false))
    const waiting: Waiting = { grant: end, timer }
    const own = this.#byAccount.get(account)
    if (own === undefined) this.#byAccount.set(account, new Set([waiting]))
    else own.add(waiting)
    return { came: promise, leave: () => end(false) }
  }

  /** Gives the turn to the first account for which `take` takes room; returns whether there was one. */
  next(take: (account: string) => boolean): boolean {
    for (const [account, own] of this.#byAccount) {
      if (!take(account)) continue
      const [first] = own
      first!.grant(true)
      // Its next request waits until the other accounts had a turn.
      if (own.size > 0) {
        this.#byAccount.delete(account)
        this.#byAccount.set(account, own)
      }
      return true
    }
    return false
  }

  #remove(account: string, waiting: Waiting): boolean {
    const own = this.#byAccount.get(account)
    if (own?.delete(waiting) !== true) return false
    if (own.size === 0) this.#byAccount.delete(account)
    this.#places.give(account)
    return true
  }
}
