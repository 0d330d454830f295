import { BoundedMap } from '../../runtime/bounded-map.ts'

/** Maximum accounts whose times are remembered. */
const maxAccounts = 10_000
/** Assumed of an account whose requests have not ended yet. */
const assumedMs = 10_000
/** The share of the newest request in the average. */
const newestShare = 0.1

/** How long the requests of each account with budgets usually take, as seen by this process. */
export class HoldTimes {
  readonly #averages = new BoundedMap<string, number>(maxAccounts)

  /** A request has ended. */
  note(accountId: string, totalMs: number): void {
    const average = this.#averages.get(accountId)
    const next = average === undefined ? totalMs : average + (totalMs - average) * newestShare
    this.#averages.setLast(accountId, next)
  }

  of(accountId: string): number {
    return this.#averages.get(accountId) ?? assumedMs
  }
}
