import { ServiceError } from '../../domain/errors.ts'
import { type Plan, usualFusionsAtOnce } from '../../domain/plans.ts'

/** About the duration of a deliberation: retrying earlier is pointless, and SDKs wait at most a minute. */
const retryAfterSeconds = 10

/** Concurrent fusions in this process. */
const maxAtOnce = 1_024
/** Concurrent fusions of one account, whatever its plan says. */
const maxOfAccount = maxAtOnce / 2

/**
 * Limits concurrent fusions per account and in total: each makes several calls at once, and no account may take every
 * slot (contract 15.15, 29.1). Counts this process only (docs/decisions/24).
 */
export class FusionSlots {
  readonly #running = new Map<string, number>()
  #total = 0

  /**
   * Takes a slot until it is disposed.
   * @throws ServiceError `too_many_fusions` if the plan allows no more, `server_busy` if all slots are taken
   */
  take(accountId: string, { fusionsAtOnce = usualFusionsAtOnce, name: plan }: Plan): Disposable {
    const limit = Math.min(fusionsAtOnce, maxOfAccount)
    const count = this.#running.get(accountId) ?? 0
    if (count >= limit) {
      throw new ServiceError('too_many_fusions', {
        retryAfterSeconds,
        words: { limit, plan, seconds: retryAfterSeconds },
      })
    }
    if (this.#total >= maxAtOnce) throw new ServiceError('server_busy', { retryAfterSeconds })
    this.#running.set(accountId, count + 1)
    this.#total += 1
    return { [Symbol.dispose]: () => this.#release(accountId) }
  }

  #release(accountId: string): void {
    this.#total -= 1
    const count = (this.#running.get(accountId) ?? 0) - 1
    if (count > 0) this.#running.set(accountId, count)
    else this.#running.delete(accountId)
  }
}
