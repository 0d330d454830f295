import type { Clock } from '../../runtime/clock.ts'

/**
 * The database's wall clock, as far as this node knows it: its own monotonic clock and the difference that it measured
 * last. All nodes thus agree on the time, whatever their wall clocks show (contract 36.14).
 */
export class DatabaseClock {
  readonly #clock: Clock
  #differenceMs: number

  /** Shows the node's wall clock until the database's is known. */
  constructor(clock: Clock) {
    this.#clock = clock
    this.#differenceMs = clock.nowMs() - clock.monotonicMs()
  }

  /** Notes the time `databaseMs` that a statement returned. `sentMs`: when it was sent, monotonic. */
  note(databaseMs: number, sentMs: number): void {
    this.#differenceMs = databaseMs - sentMs
  }

  /** Epoch milliseconds; ahead of the database's clock by at most the duration of the statement that measured it. */
  nowMs(): number {
    return this.#clock.monotonicMs() + this.#differenceMs
  }
}
