/** Deeper JSON is rejected: nothing that we read from operators is. */
const maxDepth = 32

/** Why a JSON text cannot be read, and where. */
export interface JsonFault {
  readonly fault: 'invalid' | 'repeated' | 'deep'
  /** The names down to the fault; list entries by their index. */
  readonly path: readonly (string | number)[]
}

/**
 * Parses JSON strictly: names must not repeat, because one of the two values would be lost, and nesting is limited to 32
 * levels. The time is linear in the length of the text.
 */
export function parseStrictJson(text: string): { readonly value: unknown } | JsonFault {
  const deep = depthFault(text)
  if (deep !== undefined) return deep
  try {
    const value: unknown = JSON.parse(text)
    return repeatedFault(text) ?? { value }
  } catch {
    return { fault: 'invalid', path: [] }
  }
}

/** Before parsing, because parsers recurse. Text that is not JSON is reported later. */
function depthFault(text: string): JsonFault | undefined {
  let depth = 0
  for (const token of tokensOf(text)) {
    if (token === '{' || token === '[') depth += 1
    else if (token === '}' || token === ']') depth -= 1
    if (depth > maxDepth) return { fault: 'deep', path: [] }
  }
  return undefined
}

/** Strings as a whole, and punctuation, in one pass. An unfinished string is left out: the text is not JSON. */
function* tokensOf(text: string): Generator<string, void> {
  let index = 0
  while (index < text.length) {
    const start = index
    const character = text[index]!
    index += 1
    if (character === '"') {
      while (index < text.length && text[index] !== '"') index += text[index] === '\\' ? 2 : 1
      index += 1
      if (index > text.length) return
      yield text.slice(start, index)
    } else if ('{}[],:'.includes(character)) yield character
  }
}

interface Level {
  /** The names of an object so far; undefined for a list. */
  readonly names: Set<string> | undefined
  step: string | number
  expectsName: boolean
}

/** Finds a repeated name in valid JSON. */
function repeatedFault(text: string): JsonFault | undefined {
  const levels: Level[] = []
  for (const token of tokensOf(text)) {
    const level = levels.at(-1)
    if (token === '{') levels.push({ names: new Set(), step: '', expectsName: true })
    else if (token === '[') levels.push({ names: undefined, step: 0, expectsName: false })
    else if (token === '}' || token === ']') levels.pop()
    else if (token === ',' && level !== undefined) {
      level.expectsName = level.names !== undefined
      if (typeof level.step === 'number') level.step += 1
    } else if (level?.expectsName === true && level.names !== undefined && token !== ':') {
      const name = JSON.parse(token) as string
      level.expectsName = false
      level.step = name
      if (level.names.has(name)) return { fault: 'repeated', path: levels.map(({ step }) => step) }
      level.names.add(name)
    }
  }
  return undefined
}
