import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'

/** Random choices that only the seed determines. */
export class Dice {
  /** At least 0, less than 1. */
  readonly number: () => number

  constructor(seed: number) {
    this.number = seededRandom(seed)
  }

  chance(share: number): boolean {
    return this.number() < share
  }

  /** A whole number from 0 to `most`. */
  upTo(most: number): number {
    return Math.floor(this.number() * (most + 1))
  }

  /** A number from `least` to less than `most`. */
  between(least: number, most: number): number {
    return least + this.number() * (most - least)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.upTo(items.length - 1)]!
  }

  /** Mostly short, sometimes very long. */
  ms(median: number): number {
    return Math.round(median * Math.exp((this.number() + this.number() + this.number() - 1.5) * 2))
  }

  /** The only source of randomness that the service has in a simulation. */
  bytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count)
    for (let at = 0; at < count; at++) bytes[at] = this.upTo(255)
    return bytes
  }
}
