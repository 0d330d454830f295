import type { Clock } from '../../runtime/clock.ts'

/**
 * A measurement that took longer, for example because it waited for a connection, does not replace a shorter one that it does
 * not contradict by more than this.
 */
const exactMs = 250

/**
 * The database's wall clock, as far as this node knows it: its own monotonic clock and the difference that it measured
 * last. All nodes thus agree on the time, whatever their wall clocks show (contract 36.14).
 */
export class DatabaseClock {
  readonly #clock: Clock
  #isKnown = false
  /** Its difference to the monotonic clock is between these. */
  #leastMs: number
  #mostMs: number

  /** Shows the node's wall clock until the database's is known. */
  constructor(clock: Clock) {
    this.#clock = clock
    this.#mostMs = clock.nowMs() - clock.monotonicMs()
    this.#leastMs = this.#mostMs
  }

  /** Notes the time `databaseMs` that a statement has just returned. `sentMs`: when it was sent, monotonic. */
  note(databaseMs: number, sentMs: number): void {
    const leastMs = databaseMs - this.#clock.monotonicMs()
    const mostMs = databaseMs - sentMs
    const isExact = mostMs - leastMs <= Math.max(exactMs, this.#mostMs - this.#leastMs)
    const contradicts = leastMs > this.#mostMs + exactMs || mostMs < this.#leastMs - exactMs
    if (this.#isKnown && !isExact && !contradicts) return
    this.#isKnown = true
    this.#leastMs = leastMs
    this.#mostMs = mostMs
  }

  /** Epoch milliseconds; ahead of the database's clock by at most the duration of the statement that measured it. */
  nowMs(): number {
    return this.#clock.monotonicMs() + this.#mostMs
  }

  /** Epoch milliseconds; behind the database's clock by at most the duration of the statement that measured it. */
  earliestMs(): number {
    return this.#clock.monotonicMs() + this.#leastMs
  }
}
