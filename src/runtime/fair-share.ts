/** The maximum share of one holder, as a multiple of the free rest: alone it gets 4/5 of the resource. */
const holderWeight = 4
/** The same for a group of holders, which gets 19/20, so that one holder leaves room for others of its group. */
const groupWeight = 19

/** Maximum number of names kept that hold nothing. */
const maxIdleNames = 1024

/**
 * A bounded resource with several holders: a dynamic threshold (Choudhury and Hahne). A holder may have at most four
 * times what is still free, so a single one gets 4/5, `n` greedy ones get 4/(4n+1) each, and a part is always left for
 * a new holder (contract 29.2). A holder can belong to a group, such as an account at an address. Names of holders and
 * groups must differ.
 */
export class FairShare {
  readonly limit: number
  readonly #held = new Map<string, number>()
  /** Names in `#held` that hold nothing. */
  #idle = 0
  #used = 0
  #rejected = 0

  /** `limit` in any unit: requests, bytes, connections. */
  constructor(limit: number) {
    this.limit = limit
  }

  /** The amount that all holders have together. */
  get used(): number {
    return this.#used
  }

  /** How often `take` returned false. */
  get rejected(): number {
    return this.#rejected
  }

  /** The amount that one holder has. */
  heldBy(holder: string): number {
    return this.#held.get(holder) ?? 0
  }

  /** Whether this holder, as one of its group, could take the amount now. */
  has(holder: string, amount = 1, group?: string): boolean {
    const free = this.limit - this.#used
    if (amount > free || this.heldBy(holder) + amount > holderWeight * free) return false
    return group === undefined || this.heldBy(group) + amount <= groupWeight * free
  }

  /**
   * Takes an amount for a holder. Takes nothing and returns false if it exceeds the share of the holder or its group.
   */
  take(holder: string, amount = 1, group?: string): boolean {
    if (!this.has(holder, amount, group)) {
      this.#rejected += 1
      return false
    }
    this.#add(holder, amount)
    if (group !== undefined) this.#add(group, amount)
    this.#used += amount
    return true
  }

  /** Releases an amount that was taken for the same holder and group. */
  give(holder: string, amount = 1, group?: string): void {
    this.#used -= amount
    this.#add(holder, -amount)
    if (group !== undefined) this.#add(group, -amount)
  }

  #add(name: string, amount: number): void {
    const before = this.#held.get(name)
    const held = (before ?? 0) + amount
    if (before === undefined && held === 0) return
    if (before === 0 && held > 0) this.#idle -= 1
    if (before !== 0 && held === 0) this.#idle += 1
    this.#held.set(name, held)
    if (this.#idle > maxIdleNames) this.#forgetIdle()
  }

  /**
   * Idle names are removed together. Removing each at once would make the map replace its table every few requests, and
   * V8 keeps what a replaced table refers to alive until the next full garbage collection.
   */
  #forgetIdle(): void {
    for (const [name, held] of this.#held) if (held === 0) this.#held.delete(name)
    this.#idle = 0
  }
}
