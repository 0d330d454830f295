/** What is looked for: an exact text, or an expression that must be global. */
export type Wanted = string | RegExp

/**
 * Finds the first of several things in a text, again and again from further on. Each is searched for by itself, because
 * the engine skips through a text for one thing, and for several at once tries every place; where each stands next is
 * remembered, so that a text is read once for each thing however many are found.
 */
export class Earliest {
  readonly #wanted: readonly Wanted[]
  /** Where each was found next. */
  readonly #at: number[]

  constructor(wanted: readonly Wanted[]) {
    this.#wanted = wanted
    this.#at = wanted.map(() => -1)
  }

  /** Another text comes. */
  reset(): void {
    this.#at.fill(-1)
  }

  /** Where the first of them begins in the text at or behind `from`; -1 where none does. `from` only rises within one text. */
  find(text: string, from: number): number {
    let first = Number.POSITIVE_INFINITY
    for (let index = 0; index < this.#wanted.length; index += 1) {
      let at = this.#at[index]!
      if (at < from) at = this.#at[index] = search(this.#wanted[index]!, text, from)
      if (at < first) first = at
    }
    return first === Number.POSITIVE_INFINITY ? -1 : first
  }
}

function search(wanted: Wanted, text: string, from: number): number {
  let at: number
  if (typeof wanted === 'string') at = text.indexOf(wanted, from)
  else {
    wanted.lastIndex = from
    at = wanted.exec(text)?.index ?? -1
  }
  return at < 0 ? Number.POSITIVE_INFINITY : at
}
