const quote = 0x22
const backslash = 0x5c
const nearCharacters = 64

/**
 * The JSON text of each array element, in order and exactly as written, so that some can be left out without changing
 * the others. `json` must be valid; undefined if it is not an array.
 */
export function elementsOf(json: string): string[] | undefined {
  const open = json.search(/\S/)
  if (json[open] !== '[') return undefined
  const elements: string[] = []
  let depth = 0
  let from = open + 1
  for (let at = open; at < json.length; at++) {
    const character = json[at]
    if (character === '"') at = endOfString(json, at)
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') depth -= 1
    if (depth > 1 || (character !== ',' && depth === 1)) continue
    if (depth === 1 || json.slice(from, at).trim() !== '') elements.push(json.slice(from, at).trim())
    from = at + 1
    if (depth === 0) break
  }
  return elements
}

/** The offset of the quote that ends the string starting at `start`. */
export function endOfString(json: string, start: number): number {
  let at = start + 1
  for (;;) {
    // Where escapes are dense, a native search per quote would cost more than it skips.
    const near = at + nearCharacters
    while (at < near) {
      const code = json.charCodeAt(at)
      if (code === quote) return at
      if (!(code >= 0)) return json.length
      at += code === backslash ? 2 : 1
    }
    const found = json.indexOf('"', at)
    if (found < 0) return json.length
    let slashes = 0
    while (found - slashes > at && json.charCodeAt(found - slashes - 1) === backslash) slashes += 1
    if (slashes % 2 === 0) return found
    at = found + 1
  }
}
