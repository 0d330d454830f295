/** A map that holds at most so many entries: one too many pushes out the first, which is the one put in longest ago. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number

  constructor(max: number) {
    super()
    this.#max = max
  }

  /** As of every map: an entry that is there keeps its place. */
  override set(key: Key, value: Value): this {
    super.set(key, value)
    if (this.size > this.#max) {
      const first = this.keys().next()
      if (!first.done) this.delete(first.value)
    }
    return this
  }

  /** Puts an entry behind all others, so that the first is the one that was longest untouched. */
  setLast(key: Key, value: Value): void {
    this.delete(key)
    this.set(key, value)
  }
}
