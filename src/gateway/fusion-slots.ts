import { ServiceError } from '../domain/errors.ts'
import { type Plan, usualFusionsAtOnce } from '../domain/plans.ts'

/** A deliberation takes about as long: sooner nothing is to be expected, and the SDKs wait for no more than a minute. */
const retryAfterSeconds = 10

/** Fusions under way in this process. */
const maxAtOnce = 1_024
/** Of these one account may have at most so many, whatever its plan says. */
const maxOfAccount = maxAtOnce / 2

/**
 * Fusions under way, by account and in all: each is several calls at once, and no account may take every place
 * (contract 15.15, 29.1). Counted in this process alone (docs/decisions/24).
 */
export class FusionSlots {
  readonly #underWay = new Map<string, number>()
  #total = 0

  /**
   * Takes a place until it is disposed of.
   * @throws ServiceError `too_many_fusions` where the plan allows no more, `server_busy` where all places are taken
   */
  take(accountId: string, { fusionsAtOnce = usualFusionsAtOnce, name: plan }: Plan): Disposable {
    const limit = Math.min(fusionsAtOnce, maxOfAccount)
    const count = this.#underWay.get(accountId) ?? 0
    if (count >= limit) {
      throw new ServiceError('too_many_fusions', {
        retryAfterSeconds,
        words: { limit, plan, seconds: retryAfterSeconds },
      })
    }
    if (this.#total >= maxAtOnce) throw new ServiceError('server_busy', { retryAfterSeconds })
    this.#underWay.set(accountId, count + 1)
    this.#total += 1
    return { [Symbol.dispose]: () => this.#giveBack(accountId) }
  }

  #giveBack(accountId: string): void {
    this.#total -= 1
    const count = (this.#underWay.get(accountId) ?? 0) - 1
    if (count > 0) this.#underWay.set(accountId, count)
    else this.#underWay.delete(accountId)
  }
}
