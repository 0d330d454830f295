import { randomFillSync } from 'node:crypto'

/** Randomness as a parameter (contract 35.1): `count` unpredictable bytes. */
export type RandomBytes = (count: number) => Uint8Array

const poolBytes = 4096

/** The operating system's randomness, read in blocks, because one call per id costs more than the id. */
export function systemRandom(): RandomBytes {
  const pool = new Uint8Array(poolBytes)
  let used = poolBytes
  return (count) => {
    if (count > poolBytes) return randomFillSync(new Uint8Array(count))
    if (used + count > poolBytes) {
      randomFillSync(pool)
      used = 0
    }
    const bytes = pool.slice(used, used + count)
    pool.fill(0, used, used + count)
    used += count
    return bytes
  }
}
