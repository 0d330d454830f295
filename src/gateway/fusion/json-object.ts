import type { JsonObject } from '../../domain/conversation.ts'
import { isObject } from '../../domain/json.ts'

/** Of a reply that is searched for its object. */
const maxSearchedCharacters = 65_536
/** Beginnings of an object that are tried: more of them are no reply but noise. */
const maxStarts = 32

/**
 * The first JSON object in a model's reply, whatever stands around it: fences, a greeting, a second object. Undefined
 * where there is none that can be read.
 */
export function findJsonObject(reply: string): JsonObject | undefined {
  const text = reply.slice(0, maxSearchedCharacters)
  let from = text.indexOf('{')
  for (let starts = 0; from !== -1 && starts < maxStarts; starts++) {
    const end = endOfObject(text, from)
    // Without an end nothing behind it can have one either, unless a brace before it was none of JSON's.
    const found = end === -1 ? undefined : parseObject(text.slice(from, end))
    if (found !== undefined) return found
    from = text.indexOf('{', from + 1)
  }
  return undefined
}

function endOfObject(text: string, start: number): number {
  let depth = 0
  let isInString = false
  for (let index = start; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (isInString) {
      if (code === 92) index += 1
      else if (code === 34) isInString = false
    } else if (code === 34) isInString = true
    else if (code === 123) depth += 1
    else if (code === 125) {
      depth -= 1
      if (depth === 0) return index + 1
    }
  }
  return -1
}

function parseObject(text: string): JsonObject | undefined {
  for (const attempt of [text, text.replace(/,(?=\s*[}\]])/g, '')]) {
    try {
      const value: unknown = JSON.parse(attempt)
      if (isObject(value)) return value
    } catch {
      // Not JSON as it stands: perhaps without the commas before a closing bracket, perhaps not at all.
    }
  }
  return undefined
}
