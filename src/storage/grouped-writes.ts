interface Waiting<Item, Result> {
  readonly item: Item
  readonly bytes: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

export interface GroupedWritesOptions<Item, Result> {
  /** Writes a group in one transaction. Resolves with the result of each item, in the order of the items. */
  readonly write: (items: readonly Item[]) => Promise<readonly Result[]>
  readonly bytesOf: (item: Item) => number
  /** The order within a group; the order of arrival if absent. */
  readonly order?: (one: Item, other: Item) => number
  readonly maxItems: number
  /** Maximum bytes of a group of more than one item: a transaction blocks other writers on SQLite. */
  readonly maxBytes: number
}

/**
 * Writes in one transaction at a time: items that arrive during a write share the next one, so another writer's lock is
 * awaited once for all of them. What waits is bounded by the callers.
 */
export class GroupedWrites<Item, Result> {
  readonly #options: GroupedWritesOptions<Item, Result>
  readonly #waiting: Waiting<Item, Result>[] = []
  #waitingBytes = 0
  #isWriting = false

  constructor(options: GroupedWritesOptions<Item, Result>) {
    this.#options = options
  }

  /** Bytes of the items whose write has not begun. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  /** Rejects with the error of the write that the item is part of. */
  add(item: Item): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const bytes = this.#options.bytesOf(item)
    this.#waiting.push({ item, bytes, resolve, reject })
    this.#waitingBytes += bytes
    if (!this.#isWriting) void this.#write()
    return promise
  }

  async #write(): Promise<void> {
    const { write, order } = this.#options
    this.#isWriting = true
    while (this.#waiting.length > 0) {
      const group = this.#take()
      if (order !== undefined) group.sort((one, other) => order(one.item, other.item))
      try {
        const results = await write(group.map(({ item }) => item))
        for (const [at, { resolve }] of group.entries()) resolve(results[at]!)
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    this.#isWriting = false
  }

  #take(): Waiting<Item, Result>[] {
    const { maxItems, maxBytes } = this.#options
    let count = 0
    let bytes = 0
    while (count < Math.min(maxItems, this.#waiting.length)) {
      bytes += this.#waiting[count]!.bytes
      if (count > 0 && bytes > maxBytes) break
      count += 1
    }
    const group = this.#waiting.splice(0, count)
    for (const waiting of group) this.#waitingBytes -= waiting.bytes
    return group
  }
}
