import { isWellFormedKey, keyLength, keyPrefix } from './keys.ts'

/** Maximum number of keys that one search returns. */
export const maxReportedKeys = 1000

/** Every well-formed svc-router key in the texts, each once, in order of appearance. */
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
