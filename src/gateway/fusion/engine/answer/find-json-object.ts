import { type JsonObject, isObject } from '../../../../domain/json.ts'

/** The part of a reply that is searched for its object, characters. */
const maxSearchedCharacters = 65_536
/** The number of opening braces to try: a reply with more is noise. */
const maxStarts = 32

/**
 * The first JSON object in a model's reply, ignoring the text around it: fences, a greeting, a second object.
 * Undefined if none can be parsed.
 */
export function findJsonObject(reply: string): JsonObject | undefined {
  const text = reply.slice(0, maxSearchedCharacters)
  let from = text.indexOf('{')
  for (let starts = 0; from !== -1 && starts < maxStarts; starts++) {
    const end = endOfObject(text, from)
    // If this object has no end, a later one has none either, unless this brace was not part of JSON.
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
      // Not valid JSON as it is; perhaps without the commas before closing brackets.
    }
  }
  return undefined
}
