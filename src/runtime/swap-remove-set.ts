/** Not exported, so that only the set can change where an entry is. */
const position = Symbol('position')

/** Base class of the entries of a `SwapRemoveSet`, each of which can be in one set at a time. */
export abstract class SetEntry {
  /** The position in its set; -1 if it is in none. */
  [position] = -1
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
    item[position] = this.#items.length
    this.#items.push(item)
  }

  has(item: T): boolean {
    return this.#items[item[position]] === item
  }

  /** Removes an entry; does nothing if it is not in this set. */
  delete(item: T): void {
    const index = item[position]
    if (index < 0 || this.#items[index] !== item) return
    item[position] = -1
    const last = this.#items.pop()!
    if (last === item) return
    last[position] = index
    this.#items[index] = last
  }

  /** The current entries. Later additions and removals do not affect the result. */
  all(): readonly T[] {
    return this.#items.slice()
  }
}
