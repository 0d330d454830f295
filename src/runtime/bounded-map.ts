/**
 * A map with a maximum size (contract 35.7). If it is full, adding an entry evicts the one that was added longest ago.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number

  constructor(max: number) {
    super()
    this.#max = max
  }

  /** As in every map, an existing entry keeps its position. */
  override set(key: Key, value: Value): this {
    super.set(key, value)
    if (this.size > this.#max) {
      const first = this.keys().next()
      if (!first.done) this.delete(first.value)
    }
    return this
  }

  /** Moves an entry to the end, so that the least recently used one is first. */
  setLast(key: Key, value: Value): void {
    this.delete(key)
    this.set(key, value)
  }
}
