/** Not exported, so that only the set can change an entry's neighbors. */
const links = Symbol('links')

interface Neighbors<T> {
  before: T | undefined
  after: T | undefined
}

/** Base class of the entries of a `LinkedSet`, each of which can be in one set at a time. */
export abstract class LinkedEntry {
  /** Undefined if it is in no set. */
  [links]: Neighbors<this> | undefined = undefined
}

/**
 * A set of running things, in the order of their addition, for frequent additions and removals. A `Set` would leave
 * dead tables of references behind, as in `SwapRemoveSet`.
 */
export class LinkedSet<T extends LinkedEntry> {
  #first: T | undefined
  #last: T | undefined

  get isEmpty(): boolean {
    return this.#first === undefined
  }

  /** The entry that was added first. */
  get first(): T | undefined {
    return this.#first
  }

  /** Whether an entry is in this set: it must be in no other. */
  has(entry: T): boolean {
    return entry[links] !== undefined
  }

  /** Adds an entry that is in no set. */
  add(entry: T): void {
    const last = this.#last
    entry[links] = { before: last, after: undefined }
    if (last === undefined) this.#first = entry
    else last[links]!.after = entry
    this.#last = entry
  }

  /** Removes an entry of this set; does nothing if it is in none. */
  delete(entry: T): void {
    const neighbors = entry[links]
    if (neighbors === undefined) return
    const { before, after } = neighbors
    entry[links] = undefined
    if (before === undefined) this.#first = after
    else before[links]!.after = after
    if (after === undefined) this.#last = before
    else after[links]!.before = before
  }

  /** The entries, the one that was added first in front. Only the current entry can be deleted meanwhile. */
  *[Symbol.iterator](): Generator<T, void, undefined> {
    let entry = this.#first
    while (entry !== undefined) {
      const next: T | undefined = entry[links]!.after
      yield entry
      entry = next
    }
  }
}
