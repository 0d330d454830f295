/** Answers of one connection that can be gone on from at once; of more the oldest is forgotten (contract 14.4). */
const maxAnswers = 32
/** Answers behind one another. */
const maxLinks = 1_000
/** Of all connections together; each character takes two bytes at most. */
const maxTotalChars = 128 * 1024 * 1024

/** One turn as a later one goes on from it: the items of its input and its output, and what stands before them. */
export interface Told {
  /** JSON of the items, separated by commas, without brackets. */
  readonly text: string
  readonly before: Told | undefined
  /** The stored answer that the first turn went on from, if any. */
  readonly storedId: string | undefined
  /** Characters of this one and of all before it. */
  readonly chars: number
  readonly links: number
}

interface Counted extends Told {
  readonly before: Counted | undefined
  /** By how many it is held: those that go on from it, and the list of answers. Without any it is gone. */
  holders: number
}

/**
 * What all connections may hold together. Where that is not enough, the account that holds the most forgets, beginning with
 * its connection that was idle longest: no account loses what it holds because another holds more (contract 29.10).
 */
export class MemoryBudget {
  readonly #maxChars: number
  readonly #owners = new Set<ConnectionMemory>()
  readonly #ofAccount = new Map<string, number>()
  #chars = 0

  constructor(maxChars = maxTotalChars) {
    this.#maxChars = maxChars
  }

  /** Characters that are held now. */
  get chars(): number {
    return this.#chars
  }

  /** Counts what one connection holds more, or less where `chars` is negative. */
  count(owner: ConnectionMemory, chars: number): void {
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

  /** Says that a connection is in use. */
  use(owner: ConnectionMemory): void {
    this.#owners.delete(owner)
    this.#owners.add(owner)
  }

  leave(owner: ConnectionMemory): void {
    this.#owners.delete(owner)
  }
}

/** What was said on one connection and is kept nowhere else (contract 14.4): in memory, bounded, and gone with the connection. */
export class ConnectionMemory {
  /** Whose connection it is. */
  readonly accountId: string
  readonly #budget: MemoryBudget
  readonly #maxChars: number
  readonly #answers = new Map<string, Counted>()

  /** `maxChars` bounds what one answer has behind it: more could not be asked again anyway. */
  constructor(budget: MemoryBudget, maxChars: number, accountId: string) {
    this.accountId = accountId
    this.#budget = budget
    this.#maxChars = maxChars
  }

  /** What an answer of this connection said, and what came before it. */
  find(id: string): Told | undefined {
    const found = this.#answers.get(id)
    if (found !== undefined) this.#budget.use(this)
    return found
  }

  /** Keeps an answer. `before` is what `find` gave for the one that it went on from. */
  keep(id: string, text: string, { before, storedId }: Partial<Pick<Told, 'before' | 'storedId'>>): void {
    const held = before as Counted | undefined
    const links = (held?.links ?? 0) + 1
    const chars = (held?.chars ?? 0) + text.length
    // What came before may have been forgotten meanwhile: half a conversation would be answered as if it were all.
    if (held?.holders === 0 || links > maxLinks || chars > this.#maxChars) return this.forget(id)
    if (held !== undefined) held.holders += 1
    this.forget(id)
    this.#answers.set(id, { text, before: held, storedId, chars, links, holders: 1 })
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= maxAnswers) break
      this.forget(oldest)
    }
    this.#budget.count(this, text.length)
  }

  /** Forgets an answer; those that went on from it stay. */
  forget(id: string): void {
    const told = this.#answers.get(id)
    if (told === undefined) return
    this.#answers.delete(id)
    this.#release(told)
  }

  clear(): void {
    for (const id of this.#answers.keys()) this.forget(id)
    this.#budget.leave(this)
  }

  #release(held: Counted): void {
    for (let told: Counted | undefined = held; told !== undefined; told = told.before) {
      told.holders -= 1
      if (told.holders > 0) return
      this.#budget.count(this, -told.text.length)
    }
  }
}

/** Everything that was said up to an answer, as JSON of items without brackets, and the stored answer before it all. */
export function tellAll(last: Told): { readonly text: string; readonly storedId: string | undefined } {
  const texts: string[] = []
  let first = last
  for (let told: Told | undefined = last; told !== undefined; told = told.before) {
    if (told.text !== '') texts.push(told.text)
    first = told
  }
  return { text: texts.toReversed().join(','), storedId: first.storedId }
}
