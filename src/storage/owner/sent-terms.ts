import type { Terms } from './owner-messages.ts'
import { maxTerms } from './owner-messages.ts'

/** Terms that are remembered for each key. Usually there are one or two: a profile, streamed or not. */
const perKey = 8
const maxKeys = maxTerms / perKey

/** The terms of one key, numbered from `first`. */
interface KeyTerms {
  readonly first: number
  readonly terms: Terms[]
  /** The place of the terms that are replaced next. */
  oldest: number
}

/**
 * The terms that a worker has sent to its owner. An admission names their number, so that neither side writes, parses, and
 * keeps the same texts for every request. A key's oldest terms are replaced, and sent again when they are needed.
 */
export class SentTerms {
  readonly #keys = new Map<string, KeyTerms>()

  /** The number of the terms. If they are new, `tell` is called first. */
  numberOf(terms: Terms, tell: (number: number, terms: Terms) => void): number {
    const known = this.#keys.get(terms.keyId) ?? this.#add(terms.keyId)
    for (let place = 0; place < known.terms.length; place += 1)
      if (isSame(known.terms[place]!, terms)) return known.first + place
    const place = known.oldest
    known.terms[place] = terms
    known.oldest = (place + 1) % perKey
    tell(known.first + place, terms)
    return known.first + place
  }

  #add(keyId: string): KeyTerms {
    let first = this.#keys.size * perKey
    if (this.#keys.size === maxKeys) {
      const [oldest, { first: free }] = this.#keys.entries().next().value!
      this.#keys.delete(oldest)
      first = free
    }
    const added: KeyTerms = { first, terms: [], oldest: 0 }
    this.#keys.set(keyId, added)
    return added
  }
}

/** Plans, limits of keys, and budgets are the same objects until they change. */
function isSame(left: Terms, right: Terms): boolean {
  return (
    left.plan === right.plan &&
    left.rate === right.rate &&
    left.budgets === right.budgets &&
    left.profile === right.profile &&
    left.format === right.format &&
    left.stream === right.stream &&
    left.units === right.units &&
    left.accountId === right.accountId
  )
}
