import { keyDigest } from '../../domain/keys.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { Secret } from '../../runtime/secret.ts'

/** Maximum number of cached keys; the oldest entry is evicted first. */
const maxRemembered = 50_000

/**
 * Caches the digests of presented keys, which never change, so that they are not recomputed for every request. Only
 * existing keys are cached, so made-up keys cannot evict real ones. Keys are held only in this process's memory, as
 * they are in every request's headers, and are never written anywhere.
 */
export class DigestCache {
  readonly #peppers: readonly Secret[]
  readonly #byKey = new BoundedMap<string, readonly string[]>(maxRemembered)

  /** `peppers`: the current one first; keys created under an earlier one are still found. */
  constructor(peppers: readonly Secret[]) {
    this.#peppers = peppers
  }

  /** The digests of a cached key, starting with the one under which it was found. */
  get(key: string): readonly string[] | undefined {
    return this.#byKey.get(key)
  }

  /** The digest of a well-formed key under each pepper, in order. */
  compute(key: string): readonly string[] {
    return this.#peppers.map((pepper) => keyDigest(key, pepper))
  }

  /** Caches the digests of an existing key; `known` is the one under which it was found. */
  set(key: string, digests: readonly string[], known: string): void {
    this.#byKey.set(key, [known, ...digests.filter((digest) => digest !== known)])
  }
}
