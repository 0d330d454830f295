/** How many times the free rest one holder may hold: alone it gets 4/5 of the resource. */
const holderWeight = 4
/** The same for a group of holders, which gets 19/20: what one holder leaves is there for others of its group, too. */
const groupWeight = 19

/**
 * A bounded resource that several holders share: a dynamic threshold (Choudhury and Hahne). A holder may hold at most four
 * times what is still free, so one alone gets 4/5, `n` greedy ones get 4/(4n+1) each, and a part is always left for a
 * holder that comes later (contract 29.2). A holder can be one of a group, such as an account at an address. The names of holders
 * and of groups never are alike.
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

  /** Whether so much could be taken now by this holder, as one of its group. */
  has(holder: string, amount = 1, group?: string): boolean {
    const free = this.limit - this.#used
    if (amount > free || this.heldBy(holder) + amount > holderWeight * free) return false
    return group === undefined || this.heldBy(group) + amount <= groupWeight * free
  }

  /** Takes so much for a holder, or nothing and gives false where that is over its share or its group's. */
  take(holder: string, amount = 1, group?: string): boolean {
    if (!this.has(holder, amount, group)) return false
    this.#add(holder, amount)
    if (group !== undefined) this.#add(group, amount)
    this.#used += amount
    return true
  }

  /** Gives back what was taken for the same holder and group. */
  give(holder: string, amount = 1, group?: string): void {
    this.#used -= amount
    this.#add(holder, -amount)
    if (group !== undefined) this.#add(group, -amount)
  }

  #add(name: string, amount: number): void {
    const held = this.heldBy(name) + amount
    if (held > 0) this.#held.set(name, held)
    else this.#held.delete(name)
  }
}
