import { endOfString } from './json-elements.ts'
import { haveTooManyShapes, maxShapes } from './json-shapes.ts'

/**
 * How deep JSON from a provider may nest. Deeper JSON parses, but whatever walks it recursively, here or in a caller's
 * client, would run out of stack.
 */
export const maxAnswerDepth = 200

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/**
 * Limits on the JSON of an answer: arrays and objects, then commas and colons. They determine the time of `JSON.parse`.
 */
const maxContainers = 400_000
const maxSeparators = 4_000_000
/** An object with more is slow to read and to write. */
const maxMembersInARow = 10_000
/** Shorter text exceeds no limit. */
const simpleLength = 2 * maxAnswerDepth
/** Shorter text can exceed only the limit on depth: a member takes at least five characters. */
const shallowLength = 5 * maxMembersInARow

/**
 * Whether JSON from a provider exceeds the limits on depth, containers, members, or shapes (contract 30.12). Short text, as
 * most events of a stream are, is not read.
 */
export function isTooComplex(json: string): boolean {
  if (json.length <= simpleLength || (json.length <= shallowLength && hasFewContainers(json))) return false
  let depth = 0
  let containers = 0
  let separators = 0
  let allMembers = 0
  let members = 0
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at)
    if (code === quote) at = endOfString(json, at)
    else if (code === comma) separators += 1
    else if (code === colon) {
      separators += 1
      allMembers += 1
      members += 1
    } else if (code === openBrace || code === openBracket) {
      depth += 1
      containers += 1
      members = 0
    } else if (code === closeBrace || code === closeBracket) {
      depth -= 1
      members = 0
    }
    if (depth > maxAnswerDepth || containers > maxContainers) return true
    if (separators > maxSeparators || members > maxMembersInARow) return true
  }
  return allMembers > maxShapes && haveTooManyShapes([json])
}

/** Whether any of these JSON texts exceeds the limits, or all of them together have too many shapes. */
export function areTooComplex(texts: readonly string[]): boolean {
  return texts.some(isTooComplex) || haveTooManyShapes(texts)
}

/** Whether there are too few opening brackets for the limit on depth, even counting those in strings. */
function hasFewContainers(json: string): boolean {
  return countUpTo(maxAnswerDepth, json, '{') + countUpTo(maxAnswerDepth, json, '[') <= maxAnswerDepth
}

/** How often a character occurs, by native searches; stops at one more than `most`. */
function countUpTo(most: number, text: string, character: string): number {
  let count = 0
  for (let at = text.indexOf(character); at >= 0 && count <= most; at = text.indexOf(character, at + 1)) count += 1
  return count
}
