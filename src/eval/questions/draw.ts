import { permute, seededRandom } from '../../gateway/fusion/engine/seeded-random.ts'

/** Seeded choices: the same seed gives the same ones, in the same order. */
export class Draw {
  readonly random: () => number

  constructor(seed: number) {
    this.random = seededRandom(seed)
  }

  /** A whole number from `low` to `high`, both included. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.random() * (high - low + 1))
  }

  /** One of a list that is not empty. */
  one<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.random() * items.length)]!
  }

  /** So many different ones, in an order of chance. */
  some<Item>(items: readonly Item[], count: number): Item[] {
    return this.shuffled(items).slice(0, count)
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    return permute(items, this.random)
  }

  chance(share: number): boolean {
    return this.random() < share
  }
}
