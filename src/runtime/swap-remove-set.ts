/** What a bag holds; `setIndex` belongs to the bag. */
export interface SetEntry {
  /** Where it lies in its bag, -1 outside. */
  setIndex: number
}

/**
 * Things that are under way, in no order. Made for much coming and going: a Set leaves behind, each time it makes room,
 * a dead table full of references, which carries whole requests over into the old generation of the heap.
 */
export class SwapRemoveSet<T extends SetEntry> {
  readonly #items: T[] = []

  get size(): number {
    return this.#items.length
  }

  /** Adds what is in no bag. */
  add(item: T): void {
    item.setIndex = this.#items.length
    this.#items.push(item)
  }

  /** Takes it out; nothing happens where it is not here. */
  delete(item: T): void {
    const { setIndex } = item
    if (setIndex < 0 || this.#items[setIndex] !== item) return
    item.setIndex = -1
    const last = this.#items.pop()!
    if (last === item) return
    last.setIndex = setIndex
    this.#items[setIndex] = last
  }

  /** What is here now; what comes or goes meanwhile does not matter. */
  all(): readonly T[] {
    return this.#items.slice()
  }
}
