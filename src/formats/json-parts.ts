import { UpstreamError } from '../domain/upstream.ts'
import type { JsonMember } from './json-scan.ts'

/*
 * Finds the parts of a large JSON object in its bytes, so that each can be parsed alone.
 */

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/** Whether these members, with commas and space between them, are all of a JSON object. */
export function isWholeObject(bytes: Buffer, members: readonly JsonMember[]): boolean {
  let at = skipSpace(bytes, 0)
  let before = openBrace
  for (const { keyStart, valueEnd } of members) {
    if (bytes[at] !== before || skipSpace(bytes, at + 1) !== keyStart) return false
    at = valueEnd
    before = comma
  }
  return bytes[at] === closeBrace && skipSpace(bytes, at + 1) === bytes.length
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from
  while (isSpace(bytes[at])) at += 1
  return at
}

function isSpace(code: number | undefined): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

/**
 * The objects of a list of objects, which is between these offsets, with only commas and space around them. @throws
 * UpstreamError `broken`
 */
export function* objectsOf(bytes: Buffer, from: number, to: number): Generator<Buffer, void> {
  let expects: 'open' | 'element' | 'comma' | 'end' = 'open'
  for (let at = from; at < to; at += 1) {
    const code = bytes[at]!
    if (code === openBrace && expects === 'element') {
      const end = endOfObject(bytes, at, to)
      yield bytes.subarray(at, end)
      at = end - 1
      expects = 'comma'
    } else if (code === openBracket && expects === 'open') expects = 'element'
    else if (code === comma && expects === 'comma') expects = 'element'
    else if (code === closeBracket && expects === 'comma') expects = 'end'
    else if (!isSpace(code)) throw new UpstreamError('broken')
  }
  if (expects !== 'end') throw new UpstreamError('broken')
}

/** The offset after the object that starts here, or `to` if it does not end. */
function endOfObject(bytes: Buffer, start: number, to: number): number {
  let depth = 0
  for (let at = start; at < to; at += 1) {
    const code = bytes[at]!
    if (code === quote) at = endOfText(bytes, at, to)
    else if (code === openBrace || code === openBracket) depth += 1
    else if (code === closeBrace || code === closeBracket) depth -= 1
    if (depth === 0) return at + 1
  }
  return to
}

function endOfText(bytes: Buffer, start: number, to: number): number {
  let at = start + 1
  while (at < to && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at
}
