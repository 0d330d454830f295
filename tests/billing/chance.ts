/** Seeded random numbers, so that a failing history can be repeated. */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = (seed ^ 0x9e3779b9) >>> 0
  }

  /** From 0 (included) to 1 (excluded). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(count: number): number {
    return Math.floor(this.next() * count)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!
  }

  isBelow(probability: number): boolean {
    return this.next() < probability
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.below(256))
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    const mixed = [...items]
    for (let index = mixed.length - 1; index > 0; index--) {
      const other = this.below(index + 1)
      ;[mixed[index], mixed[other]] = [mixed[other]!, mixed[index]!]
    }
    return mixed
  }
}
