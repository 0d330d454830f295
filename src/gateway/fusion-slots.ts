import { ServiceError } from '../domain/errors.ts'
import { type Plan, usualFusionsAtOnce } from '../domain/plans.ts'

/** A deliberation takes about as long: sooner nothing is to be expected, and the SDKs wait for no more than a minute. */
const retryAfterSeconds = 10

/**
 * Deliberations under way, by account: each is several calls at once, so one account must not have any number of them.
 * Counted in this process alone (docs/decisions/24).
 */
export class FusionSlots {
  readonly #underWay = new Map<string, number>()

  /** Takes a place until it is disposed of. @throws ServiceError `too_many_fusions` where the plan allows no more */
  take(accountId: string, { fusionsAtOnce: limit = usualFusionsAtOnce, name: plan }: Plan): Disposable {
    const count = this.#underWay.get(accountId) ?? 0
    if (count >= limit) {
      throw new ServiceError('too_many_fusions', {
        retryAfterSeconds,
        words: { limit, plan, seconds: retryAfterSeconds },
      })
    }
    this.#underWay.set(accountId, count + 1)
    return { [Symbol.dispose]: () => this.#giveBack(accountId) }
  }

  #giveBack(accountId: string): void {
    const count = (this.#underWay.get(accountId) ?? 0) - 1
    if (count > 0) this.#underWay.set(accountId, count)
    else this.#underWay.delete(accountId)
  }
}
