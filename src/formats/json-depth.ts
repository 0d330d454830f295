import { endOfString } from './json-elements.ts'

/**
 * How deep JSON from a provider may nest. Deeper JSON parses, but whatever walks it recursively, here or in a caller's
 * client, would run out of stack.
 */
export const maxAnswerDepth = 200

const quote = 0x22
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/** Whether JSON nests deeper than `levels`. Text that is too short to do so, as most events of a stream are, is not read. */
export function nestsDeeper(json: string, levels: number): boolean {
  if (json.length <= 2 * levels) return false
  let depth = 0
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at)
    if (code === quote) at = endOfString(json, at)
    else if (code === openBrace || code === openBracket) {
      depth += 1
      if (depth > levels) return true
    } else if (code === closeBrace || code === closeBracket) depth -= 1
  }
  return false
}
