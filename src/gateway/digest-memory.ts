import { keyDigest, keyFingerprint } from '../domain/keys.ts'
import type { Secret } from '../domain/secret.ts'

/** Digests remembered at once; the one made longest ago is forgotten first. */
const maxRemembered = 50_000

/** Digests of presented keys. They never change, so what was made once need not be made again for every request. */
export class DigestMemory {
  readonly #peppers: readonly Secret[]
  readonly #byFingerprint = new Map<string, readonly string[]>()

  /** The current pepper first; keys made under an earlier one are still found. */
  constructor(peppers: readonly Secret[]) {
    this.#peppers = peppers
  }

  /** The digests of a key that was seen before. */
  recall(key: string): readonly string[] | undefined {
    return this.#byFingerprint.get(keyFingerprint(key))
  }

  /** The digest of a well-formed key under each pepper, in their order. */
  make(key: string): readonly string[] {
    if (this.#byFingerprint.size >= maxRemembered) {
      const oldest = this.#byFingerprint.keys().next()
      if (!oldest.done) this.#byFingerprint.delete(oldest.value)
    }
    const digests = this.#peppers.map((pepper) => keyDigest(key, pepper))
    this.#byFingerprint.set(keyFingerprint(key), digests)
    return digests
  }
}
