import { LinkedEntry, LinkedSet } from '../../runtime/linked-set.ts'

/** This many slow calls, and no call begun since the first of them that was answered in time, show a slow backend. */
export const leastSlowCalls = 3
/** Calls whose content came late count for this long. */
const lateCountsMs = 60_000
/** Of many calls that wait, the longest-waiting ones are looked at. */
const mostLookedAt = 32
/** Of accounts that use the backend, as many as there are, up to this many, must have slow calls. */
const agreeingAccounts = 3

/** When the first content of a call is slow. */
export interface Pace {
  /** Never before this time, milliseconds. */
  readonly leastMs: number
  /** After this time, at least `leastMs`; undefined if too little is known. */
  slowMs(): number | undefined
}

/** A call whose first content says something of the backend's speed. */
export abstract class AwaitedCall extends LinkedEntry {
  abstract readonly account: string
  /** Monotonic milliseconds. */
  abstract readonly startedMs: number
  abstract readonly pace: Pace | undefined

  /** Whether it has waited too long by now. */
  isSlow(nowMs: number): boolean {
    const waitedMs = nowMs - this.startedMs
    if (this.pace === undefined || waitedMs <= this.pace.leastMs) return false
    return waitedMs > (this.pace.slowMs() ?? Infinity)
  }
}

/**
 * The calls of one backend that were begun after the newest one that was answered in time: they wait for content, or
 * it came late (contract 8.11). A backend that hangs is noticed by them, before the first of them times out.
 */
export class SlowCalls {
  readonly #waiting = new LinkedSet<AwaitedCall>()
  #waitingCount = 0
  /** Calls whose content came late, or before which another backend answered; the newest `leastSlowCalls`. */
  readonly #late: AwaitedCall[] = []

  /** How many there are. */
  get count(): number {
    return this.#waitingCount + this.#late.length
  }

  /** When the first of them was begun, monotonic milliseconds; undefined if there are none. */
  get sinceMs(): number | undefined {
    return this.#late[0]?.startedMs ?? this.#waiting.first?.startedMs
  }

  began(call: AwaitedCall): void {
    this.#waiting.add(call)
    this.#waitingCount += 1
  }

  /** The first content of a call has arrived. Returns whether it was late. */
  answered(call: AwaitedCall, nowMs: number): boolean {
    if (!this.#waiting.has(call)) return false
    if (call.isSlow(nowMs)) {
      this.wasLate(call)
      return true
    }
    for (const earlier of this.#waiting) {
      this.ended(earlier)
      if (earlier === call) break
    }
    while (this.#late[0] !== undefined && this.#late[0].startedMs <= call.startedMs) this.#late.shift()
    return false
  }

  /** Another backend answered the same request first. */
  wasLate(call: AwaitedCall): void {
    if (!this.#waiting.has(call)) return
    this.ended(call)
    this.#late.push(call)
    if (this.#late.length > leastSlowCalls) this.#late.shift()
  }

  /** The call ended without content. */
  ended(call: AwaitedCall): void {
    if (!this.#waiting.has(call)) return
    this.#waiting.delete(call)
    this.#waitingCount -= 1
  }

  /** Whether they show that the backend is slow. `accounts`: how many use the backend at this time. */
  areSlow(nowMs: number, accounts: number): boolean {
    while (this.#late[0] !== undefined && nowMs - this.#late[0].startedMs > lateCountsMs) this.#late.shift()
    const slow = new Set(this.#late.map(({ account }) => account))
    const needed = Math.min(agreeingAccounts, Math.max(1, accounts))
    let calls = this.#late.length
    let looked = 0
    for (const call of this.#waiting) {
      if (looked === mostLookedAt || (calls >= leastSlowCalls && slow.size >= needed)) break
      looked += 1
      if (!call.isSlow(nowMs)) continue
      calls += 1
      slow.add(call.account)
    }
    return calls >= leastSlowCalls && slow.size >= needed
  }
}
