/** FNV-1a, 32 bits: `hash` continues an earlier one. */
export function hashText(text: string, hash = 0x811c9dc5): number {
  let value = hash
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  return value >>> 0
}

/**
 * Random numbers in [0, 1) that are the same for the same seed (mulberry32). For choices that a replay must repeat;
 * never for anything that must be unguessable.
 */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/** The items in random order, every order equally likely. */
export function permute<Item>(items: readonly Item[], random: () => number): Item[] {
  const order = [...items]
  for (let last = order.length - 1; last > 0; last--) {
    const chosen = Math.floor(random() * (last + 1))
    const item = order[chosen]!
    order[chosen] = order[last]!
    order[last] = item
  }
  return order
}
