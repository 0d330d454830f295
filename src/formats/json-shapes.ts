import { endOfString } from './json-elements.ts'

/**
 * Limit on the shapes of JSON (contract 30.8, 30.12). A shape is a sequence of member names, from an object's first one.
 * `JSON.parse` takes a microsecond or two for each shape that it has not met: longer than for anything else.
 */
export const maxShapes = 20_000
/** Shorter JSON has no more: a member takes at least five characters. */
const fewShapesLength = 5 * maxShapes

const quote = 0x22
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
/** Unknown to callers, so that they cannot write names whose hashes are equal. */
const seed = crypto.getRandomValues(new Int32Array(1))[0]!

/** Whether these JSON texts together have too many shapes. Text that is not JSON gets either answer. */
export function haveTooManyShapes(texts: readonly string[]): boolean {
  if (texts.reduce((sum, { length }) => sum + length, 0) <= fewShapesLength) return false
  const shapes = new ShapeCount()
  for (const text of texts) shapes.add(text)
  return shapes.isTooHigh
}

/** Counts the shapes of several JSON texts. */
export class ShapeCount {
  readonly #shapes = new Set<number>()

  get isTooHigh(): boolean {
    return this.#shapes.size > maxShapes
  }

  /** Adds the shapes of a text, or as many as are too many. */
  add(json: string): void {
    /** The hash of the open object's shape so far, at each depth. */
    const open = [seed]
    let nameStart = 0
    let nameEnd = 0
    for (let at = 0; at < json.length && !this.isTooHigh; at += 1) {
      const code = json.charCodeAt(at)
      if (code === quote) {
        nameStart = at + 1
        nameEnd = endOfString(json, at)
        at = nameEnd
      } else if (code === colon) {
        const shape = hashOf(json, nameStart, nameEnd, open.at(-1)!)
        open[open.length - 1] = shape
        this.#shapes.add(shape)
      } else if (code === openBrace || code === openBracket) open.push(seed)
      else if ((code === closeBrace || code === closeBracket) && open.length > 1) open.pop()
    }
  }
}

/** Extends a hash by a name. */
function hashOf(json: string, from: number, to: number, before: number): number {
  let hash = Math.imul(before ^ (to - from), 0x9e3779b1)
  for (let at = from; at < to; at += 1) {
    hash = Math.imul(hash ^ json.charCodeAt(at) ^ seed, 0x85ebca6b)
    hash ^= hash >>> 15
  }
  return hash
}
