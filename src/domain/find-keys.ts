import { isWellFormedKey, keyLength, keyPrefix } from './keys.ts'

/** Keys that one search gives at most. */
export const maxReportedKeys = 1000

/** Every well-formed key of ours that stands anywhere in a text, each once, in the order in which they stand. */
export function findKeys(texts: readonly string[]): readonly string[] {
  const found = new Set<string>()
  for (const text of texts) {
    for (let at = text.indexOf(keyPrefix); at >= 0; at = text.indexOf(keyPrefix, at + 1)) {
      const candidate = text.slice(at, at + keyLength)
      if (isWellFormedKey(candidate)) found.add(candidate)
      if (found.size >= maxReportedKeys) return [...found]
    }
  }
  return [...found]
}
