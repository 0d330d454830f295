/** An entry of a `SwapRemoveSet`, which manages `setIndex`. */
export interface SetEntry {
  /** The position in its set; -1 if it is in none. */
  setIndex: number
}

/**
 * A set of running things, in no order, for frequent additions and removals. Each time a `Set` grows, it leaves a dead
 * table of references behind, which moves whole requests to the old generation of the heap.
 */
export class SwapRemoveSet<T extends SetEntry> {
  readonly #items: T[] = []

  get size(): number {
    return this.#items.length
  }

  /** Adds an entry that is in no set. */
  add(item: T): void {
    item.setIndex = this.#items.length
    this.#items.push(item)
  }

  /** Removes an entry; does nothing if it is not in this set. */
  delete(item: T): void {
    const { setIndex } = item
    if (setIndex < 0 || this.#items[setIndex] !== item) return
    item.setIndex = -1
    const last = this.#items.pop()!
    if (last === item) return
    last.setIndex = setIndex
    this.#items[setIndex] = last
  }

  /** The current entries. Later additions and removals do not affect the result. */
  all(): readonly T[] {
    return this.#items.slice()
  }
}
