/** Answers per connection that can be continued at once; the oldest is evicted (contract 14.4). */
const maxAnswers = 32
/** Longest chain of answers. */
const maxLinks = 1_000
/** Characters over all connections; each takes at most two bytes. */
const maxTotalChars = 128 * 1024 * 1024

/** One answer that a later request can continue: its input and output items, and its predecessor. */
export interface HistoryNode {
  /** JSON of the items, separated by commas, without brackets. */
  readonly text: string
  readonly before: HistoryNode | undefined
  /** The stored answer that the first one continued, if any. */
  readonly storedId: string | undefined
  /** Characters of this answer and all its predecessors. */
  readonly chars: number
  readonly links: number
}

interface Counted extends HistoryNode {
  readonly before: Counted | undefined
  /** Reference count: its successors, and the connection's list. It is freed at zero. */
  holders: number
}

/**
 * The memory that all connections may use together. When it is used up, the account that holds the most loses
 * entries, starting with its longest-idle connection: no account loses entries because another one holds more
 * (contract 29.10).
 */
export class CacheBudget {
  readonly #maxChars: number
  readonly #owners = new Set<ConnectionCache>()
  readonly #ofAccount = new Map<string, number>()
  #chars = 0

  constructor(maxChars = maxTotalChars) {
    this.#maxChars = maxChars
  }

  /** Characters currently held. */
  get chars(): number {
    return this.#chars
  }

  /** Adds to what one connection holds; a negative `chars` subtracts. */
  count(owner: ConnectionCache, chars: number): void {
    this.#chars += chars
    const held = (this.#ofAccount.get(owner.accountId) ?? 0) + chars
    if (held > 0) this.#ofAccount.set(owner.accountId, held)
    else this.#ofAccount.delete(owner.accountId)
    if (chars <= 0) return
    this.use(owner)
    while (this.#chars > this.#maxChars) this.#forgetOne()
  }

  #forgetOne(): void {
    let largest = ''
    for (const [accountId, chars] of this.#ofAccount)
      if (chars > (this.#ofAccount.get(largest) ?? 0)) largest = accountId
    for (const idle of this.#owners) if (idle.accountId === largest) return idle.clear()
  }

  /** Marks a connection as recently used. */
  use(owner: ConnectionCache): void {
    this.#owners.delete(owner)
    this.#owners.add(owner)
  }

  leave(owner: ConnectionCache): void {
    this.#owners.delete(owner)
  }
}

/**
 * Caches the answers of one connection that are stored nowhere else (contract 14.4): in memory, bounded, and freed
 * with the connection.
 */
export class ConnectionCache {
  /** The account of the connection. */
  readonly accountId: string
  readonly #budget: CacheBudget
  readonly #maxChars: number
  readonly #answers = new Map<string, Counted>()

  /** `maxChars` limits the history of one answer: a longer one could not be sent to a model again anyway. */
  constructor(budget: CacheBudget, maxChars: number, accountId: string) {
    this.accountId = accountId
    this.#budget = budget
    this.#maxChars = maxChars
  }

  /** An answer of this connection and its history. */
  find(id: string): HistoryNode | undefined {
    const found = this.#answers.get(id)
    if (found !== undefined) this.#budget.use(this)
    return found
  }

  /** Stores an answer. `before` is the result of `find` for the answer that it continues. */
  set(id: string, text: string, { before, storedId }: Partial<Pick<HistoryNode, 'before' | 'storedId'>>): void {
    const held = before as Counted | undefined
    const links = (held?.links ?? 0) + 1
    const chars = (held?.chars ?? 0) + text.length
    // The predecessor may have been evicted meanwhile: half a conversation would be answered as if it were complete.
    if (held?.holders === 0 || links > maxLinks || chars > this.#maxChars) return this.delete(id)
    if (held !== undefined) held.holders += 1
    this.delete(id)
    this.#answers.set(id, { text, before: held, storedId, chars, links, holders: 1 })
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= maxAnswers) break
      this.delete(oldest)
    }
    this.#budget.count(this, text.length)
  }

  /** Deletes an answer; its successors stay. */
  delete(id: string): void {
    const node = this.#answers.get(id)
    if (node === undefined) return
    this.#answers.delete(id)
    this.#release(node)
  }

  clear(): void {
    for (const id of this.#answers.keys()) this.delete(id)
    this.#budget.leave(this)
  }

  #release(held: Counted): void {
    for (let node: Counted | undefined = held; node !== undefined; node = node.before) {
      node.holders -= 1
      if (node.holders > 0) return
      this.#budget.count(this, -node.text.length)
    }
  }
}

/** Everything up to an answer, as JSON items without brackets, and the stored answer that precedes it all. */
export function replayHistory(last: HistoryNode): { readonly text: string; readonly storedId: string | undefined } {
  const texts: string[] = []
  let first = last
  for (let node: HistoryNode | undefined = last; node !== undefined; node = node.before) {
    if (node.text !== '') texts.push(node.text)
    first = node
  }
  return { text: texts.toReversed().join(','), storedId: first.storedId }
}
