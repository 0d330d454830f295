/** How many times the free rest one holder may hold: alone it gets 4/5 of the resource. */
const weight = 4

/**
 * A bounded resource that several holders share: a dynamic threshold (Choudhury and Hahne). A holder may hold at most four
 * times what is still free, so one alone gets 4/5, `n` greedy ones get 4/(4n+1) each, and a part is always left for a
 * holder that comes later (contract 9.9). Holders are named: an account, an address.
 */
export class FairShare {
  readonly limit: number
  readonly #held = new Map<string, number>()
  #used = 0

  /** `limit` in any unit: requests, bytes, connections. */
  constructor(limit: number) {
    this.limit = limit
  }

  /** What all holders hold together. */
  get used(): number {
    return this.#used
  }

  /** What one holder holds. */
  heldBy(holder: string): number {
    return this.#held.get(holder) ?? 0
  }

  /** Whether so much could be taken now on behalf of all of these holders. */
  has(holders: readonly string[], amount = 1): boolean {
    const free = this.limit - this.#used
    if (amount > free) return false
    for (const holder of holders) if (this.heldBy(holder) + amount > weight * free) return false
    return true
  }

  /** Takes so much on behalf of all of these holders, or nothing and gives false where it would be over the share of one of them. */
  take(holders: readonly string[], amount = 1): boolean {
    if (!this.has(holders, amount)) return false
    for (const holder of holders) this.#held.set(holder, this.heldBy(holder) + amount)
    this.#used += amount
    return true
  }

  /** Gives back what was taken on behalf of the same holders. */
  give(holders: readonly string[], amount = 1): void {
    this.#used -= amount
    for (const holder of holders) {
      const left = this.heldBy(holder) - amount
      if (left > 0) this.#held.set(holder, left)
      else this.#held.delete(holder)
    }
  }
}
