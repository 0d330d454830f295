import { BoundedMap } from '../domain/bounded-map.ts'
import { keyDigest } from '../domain/keys.ts'
import type { Secret } from '../domain/secret.ts'

/** Digests remembered at once; the one made longest ago is forgotten first. */
const maxRemembered = 50_000

/**
 * Digests of presented keys. They never change, so what was made once need not be made again for every request. Only
 * keys that exist are remembered: made-up ones, however many, push out no real one. Keys stand here in this process's
 * memory only, as they do in every request's headers; nothing of this is ever written.
 */
export class DigestMemory {
  readonly #peppers: readonly Secret[]
  readonly #byKey = new BoundedMap<string, readonly string[]>(maxRemembered)

  /** The current pepper first; keys made under an earlier one are still found. */
  constructor(peppers: readonly Secret[]) {
    this.#peppers = peppers
  }

  /** The digests of a key that was remembered, the one under which it is known first. */
  recall(key: string): readonly string[] | undefined {
    return this.#byKey.get(key)
  }

  /** The digest of a well-formed key under each pepper, in their order. */
  make(key: string): readonly string[] {
    return this.#peppers.map((pepper) => keyDigest(key, pepper))
  }

  /** Keeps the digests of a key that exists; `known` is the one of them under which it was found. */
  remember(key: string, digests: readonly string[], known: string): void {
    this.#byKey.set(key, [known, ...digests.filter((digest) => digest !== known)])
  }
}
