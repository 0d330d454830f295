import { permute, seededRandom } from '../../gateway/fusion/engine/seeded-random.ts'

/** Seeded choices: the same seed gives the same choices in the same order. */
export class Draw {
  readonly random: () => number

  constructor(seed: number) {
    this.random = seededRandom(seed)
  }

  /** A whole number from `low` to `high`, inclusive. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.random() * (high - low + 1))
  }

  /** One entry of a non-empty list. */
  one<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.random() * items.length)]!
  }

  /** This many different entries, in random order. */
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
