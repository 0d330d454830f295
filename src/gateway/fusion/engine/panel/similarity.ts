/** Buckets for counting hashed three-word sequences: enough that texts of 24 kB rarely collide. */
const buckets = 4_096
/** Numbers and code indicate agreement better than prose does. */
const heavyWeight = 3
const backtick = 96

/** Each text as weighted three-word sequences. Only vectors from the same call can be compared. */
export function vectorize(texts: readonly string[]): Float32Array[] {
  const vectors = texts.map(countShingles)
  const occurrences = new Uint8Array(buckets)
  for (const vector of vectors)
    for (let bucket = 0; bucket < buckets; bucket++) if (vector[bucket]! > 0) occurrences[bucket]! += 1
  for (const vector of vectors) {
    let sum = 0
    for (let bucket = 0; bucket < buckets; bucket++) {
      if (vector[bucket] === 0) continue
      const weight = 1 + Math.log((1 + texts.length) / (1 + occurrences[bucket]!))
      vector[bucket]! *= weight
      sum += vector[bucket]! * vector[bucket]!
    }
    const length = Math.sqrt(sum)
    if (length > 0) for (let bucket = 0; bucket < buckets; bucket++) vector[bucket]! /= length
  }
  return vectors
}

/** The similarity of two texts: 0 for nothing in common, 1 for identical. */
export function similarityOf(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let bucket = 0; bucket < buckets; bucket++) sum += a[bucket]! * b[bucket]!
  return Math.min(1, sum)
}

function countShingles(text: string): Float32Array {
  const counts = new Float32Array(buckets)
  let [before, last] = [0, 0]
  let [hash, isNumber, isInCode, ticks, words] = [0, false, false, 0, 0]
  const endWord = (): void => {
    if (hash === 0) return
    const shingle = Math.imul(Math.imul(before, 31) + last, 31) + hash
    const bucket = (shingle ^ (shingle >>> 15)) & (buckets - 1)
    counts[bucket]! += isNumber || isInCode ? heavyWeight : 1
    ;[before, last] = [last, hash]
    ;[hash, isNumber] = [0, false]
    words += 1
  }
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    ticks = code === backtick ? ticks + 1 : 0
    if (ticks === 3) isInCode = !isInCode
    const isDigit = code >= 48 && code <= 57
    const lower = code >= 65 && code <= 90 ? code + 32 : code
    if (isDigit || (lower >= 97 && lower <= 122) || (code > 127 && !isSign(code))) {
      isNumber ||= isDigit
      hash = Math.imul(hash ^ lower, 0x01000193) + 0x9e3779b9
      // Scripts that do not separate words: every character counts as one.
      if (code >= 0x2e80) endWord()
    } else endWord()
  }
  endWord()
  return counts
}

/** Punctuation and spaces outside of ASCII. */
function isSign(code: number): boolean {
  if (code <= 0xbf) return true
  if (code < 0x2000) return false
  return code <= 0x206f || (code >= 0x3000 && code <= 0x303f) || (code >= 0xff00 && code <= 0xff20)
}
