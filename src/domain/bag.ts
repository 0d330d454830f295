/** What a bag holds; `place` belongs to the bag. */
export interface Bagged {
  /** Where it lies in its bag, -1 outside. */
  place: number
}

/**
 * Things that are under way, in no order. Made for much coming and going: a Set leaves behind, each time it makes room,
 * a dead table full of references, which carries whole requests over into the old generation of the heap.
 */
export class Bag<T extends Bagged> {
  readonly #items: T[] = []

  get size(): number {
    return this.#items.length
  }

  /** Adds what is in no bag. */
  add(item: T): void {
    item.place = this.#items.length
    this.#items.push(item)
  }

  /** Takes it out; nothing happens where it is not here. */
  delete(item: T): void {
    const { place } = item
    if (place < 0 || this.#items[place] !== item) return
    item.place = -1
    const last = this.#items.pop()!
    if (last === item) return
    last.place = place
    this.#items[place] = last
  }

  /** What is here now; what comes or goes meanwhile does not matter. */
  all(): readonly T[] {
    return this.#items.slice()
  }
}
