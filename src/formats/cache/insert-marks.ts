import { type Json, isObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'
import type { JsonInsertion, JsonMember } from '../json-scan.ts'
import { inOrder } from './plan-marks.ts'

// Constants of its own, for the reason in json-scan.ts.
const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const space = 0x20
/** Longer strings are skipped by a native search. */
const shortStringBytes = 24
/** After an escaped quote: where escapes are dense, a native search per quote would cost more than it skips. */
const escapedBytes = 256

/** A mark for one block of a request: where the block is, and what to add to it. */
export interface MarkInsertion {
  readonly member: string
  /** How many entries of the member's list follow its entry; 0 if the member is a text. */
  readonly fromEnd: number
  /** How many parts of the entry's `content` follow its part; -1 if the content is a text; absent if the entry itself is the block. */
  readonly partFromEnd?: number | undefined
  /** The mark as JSON to append to an object's members, with its comma: `,"cache_control":{…}`. */
  readonly mark: string
  /** The `type` of a block that is made of a text. */
  readonly textType: string
}

/** How many parts of a message's content follow one; -1 if the content is a text. */
export function partsAfter(message: Json | undefined, part: number): number {
  const content = isObject(message) ? message['content'] : undefined
  return isArray(content) ? content.length - 1 - part : -1
}

/**
 * What to add to the request's bytes for these marks, in the order of the bytes, so that all other bytes stay the same
 * (contract 44.3). `marks` must be in the order of the prompt, so those of one member are adjacent. A mark whose block cannot
 * be found is skipped.
 */
export function insertionsOf(
  bytes: Buffer,
  members: readonly JsonMember[],
  marks: readonly MarkInsertion[],
): readonly JsonInsertion[] {
  const locator = new Locator(bytes, marks)
  for (let from = 0, to = 0; from < marks.length; from = to) {
    const name = marks[from]!.member
    do to += 1
    while (marks[to]?.member === name)
    for (let at = 0; at < members.length; at += 1) if (members[at]!.key === name) locator.locate(members[at]!, from, to)
  }
  // Blocks are found from the end of each list.
  return inOrder(locator.found)
}

/**
 * Finds blocks in JSON that is known to be valid. Marks stand near the end of a list, so its entries are searched from there:
 * how long the conversation is does not matter.
 */
class Locator {
  readonly found: JsonInsertion[] = []
  readonly #bytes: Buffer
  readonly #marks: readonly MarkInsertion[]
  /** Where the value starts that was found last, and its last byte. */
  #start = 0
  #last = 0

  constructor(bytes: Buffer, marks: readonly MarkInsertion[]) {
    this.#bytes = bytes
    this.#marks = marks
  }

  /** Adds what to insert for the marks from `first` up to, and without, `end`, which are in this member. */
  locate({ valueStart, valueEnd }: JsonMember, first: number, end: number): void {
    const start = this.#skipSpace(valueStart)
    const listEnd = this.#skipSpaceBack(valueEnd - 1)
    if (this.#bytes[start] === quote) return this.#wrap(start, listEnd, this.#marks[first]!)
    if (this.#bytes[start] !== openBracket) return
    let last = this.#skipSpaceBack(listEnd - 1)
    for (let fromEnd = 0, index = end; last > start; fromEnd += 1) {
      const entryEnd = index
      while (index > first && this.#marks[index - 1]!.fromEnd === fromEnd) index -= 1
      const mark = index < entryEnd ? this.#marks[index] : undefined
      const isBlock = mark !== undefined && mark.partFromEnd === undefined
      if (isBlock) this.#append(last, mark)
      // What comes before the first block is not read.
      if (isBlock && index === first) return
      const entry = this.#startOf(last)
      if (mark !== undefined && !isBlock) this.#locateIn(entry, last, index, entryEnd)
      if (index === first) return
      last = this.#previous(entry)
    }
  }

  /** Marks blocks of one entry of the list: the marks are those from `first` up to, and without, `end`. */
  #locateIn(entry: number, entryLast: number, first: number, end: number): void {
    if (!this.#find(entry, entryLast, 'content')) return
    const start = this.#start
    if (this.#bytes[start] === quote) return this.#wrap(start, this.#last, this.#marks[first]!)
    if (this.#bytes[start] !== openBracket) return
    let last = this.#skipSpaceBack(this.#last - 1)
    for (let fromEnd = 0, index = end; last > start; fromEnd += 1) {
      const mark = this.#marks[index - 1]!
      if (mark.partFromEnd === fromEnd) {
        this.#append(last, mark)
        index -= 1
        if (index === first) return
      }
      last = this.#previous(this.#startOf(last))
    }
  }

  /** The last byte of the entry before the one that starts here. */
  #previous(start: number): number {
    const last = this.#skipSpaceBack(start - 1)
    return this.#bytes[last] === comma ? this.#skipSpaceBack(last - 1) : last
  }

  /** Adds a mark as the last member of an object. */
  #append(last: number, { mark }: MarkInsertion): void {
    if (this.#bytes[last] === closeBrace) this.found.push({ at: last, text: mark })
  }

  /** Makes a list with one marked block of a text. */
  #wrap(start: number, last: number, { mark, textType }: MarkInsertion): void {
    this.found.push({ at: start, text: `[{"type":"${textType}","text":` }, { at: last + 1, text: `${mark}}]` })
  }

  /** Finds a member's value; the last one, as for parsers, if there are several. Whether there is one. */
  #find(start: number, last: number, name: string): boolean {
    if (this.#bytes[start] !== openBrace) return false
    let isFound = false
    let at = this.#skipSpace(start + 1)
    while (at < last && this.#bytes[at] === quote) {
      const keyEnd = this.#endOf(at)
      const isNamed = this.#isName(at + 1, keyEnd - 1, name)
      // A name that is written with escapes may be any name.
      if (isNamed === undefined) return false
      const value = this.#skipSpace(this.#skipSpace(keyEnd) + 1)
      const end = this.#endOf(value)
      if (isNamed) {
        isFound = true
        this.#start = value
        this.#last = end - 1
      }
      at = this.#skipSpace(end)
      if (this.#bytes[at] === comma) at = this.#skipSpace(at + 1)
    }
    return isFound
  }

  /** Whether these bytes are a name; undefined if they contain escapes. Compares bytes, because creating a string is slower. */
  #isName(start: number, end: number, name: string): boolean | undefined {
    let isName = end - start === name.length
    for (let at = start; at < end; at += 1) {
      const code = this.#bytes[at]!
      if (code === backslash) return undefined
      if (code !== name.charCodeAt(at - start)) isName = false
    }
    return isName
  }

  #skipSpace(from: number): number {
    let at = from
    while (this.#bytes[at]! <= space) at += 1
    return at
  }

  #skipSpaceBack(from: number): number {
    let at = from
    while (this.#bytes[at]! <= space) at -= 1
    return at
  }

  /** The offset after the value that starts here. */
  #endOf(start: number): number {
    const bytes = this.#bytes
    const first = bytes[start]
    if (first === quote) return this.#endOfString(start)
    let at = start
    if (first !== openBrace && first !== openBracket) {
      while (isInScalar(bytes[at]!)) at += 1
      return at
    }
    for (let depth = 0; at < bytes.length;) {
      const code = bytes[at]!
      if (code === quote) {
        at = this.#endOfString(at)
        continue
      }
      at += 1
      if (code === openBrace || code === openBracket) depth += 1
      else if ((code === closeBrace || code === closeBracket) && --depth === 0) break
    }
    return at
  }

  /** Where the value starts that ends with this byte. */
  #startOf(last: number): number {
    const bytes = this.#bytes
    const code = bytes[last]
    if (code === quote) return this.#startOfString(last)
    let at = last
    if (code !== closeBrace && code !== closeBracket) {
      while (isInScalar(bytes[at - 1]!)) at -= 1
      return at
    }
    for (let depth = 0; at > 0; at -= 1) {
      const one = bytes[at]!
      if (one === quote) at = this.#startOfString(at)
      else if (one === closeBrace || one === closeBracket) depth += 1
      else if ((one === openBrace || one === openBracket) && --depth === 0) break
    }
    return at
  }

  #endOfString(start: number): number {
    const bytes = this.#bytes
    let at = start + 1
    for (let near = at + shortStringBytes; ; near = at + escapedBytes) {
      while (at < near) {
        const code = bytes[at]!
        if (code === quote) return at + 1
        at += code === backslash ? 2 : 1
      }
      const end = bytes.indexOf(quote, at)
      if (end < 0) return bytes.length
      if (this.#slashesBefore(end, at) % 2 === 0) return end + 1
      at = end + 1
    }
  }

  /** Where the string starts that ends with this quote: at the nearest quote that is not escaped. */
  #startOfString(last: number): number {
    const bytes = this.#bytes
    let at = last - 1
    for (let near = Math.max(0, at - shortStringBytes); ; near = Math.max(0, at - escapedBytes)) {
      for (; at > near; at -= 1) if (bytes[at] === quote && this.#slashesBefore(at, 0) % 2 === 0) return at
      const start = bytes.lastIndexOf(quote, at)
      if (start <= 0 || this.#slashesBefore(start, 0) % 2 === 0) return Math.max(0, start)
      at = start - 1
    }
  }

  #slashesBefore(end: number, from: number): number {
    let at = end
    while (at > from && this.#bytes[at - 1] === backslash) at -= 1
    return end - at
  }
}

/** Whether a byte belongs to a number, `true`, `false`, or `null`, and not to what surrounds one. */
function isInScalar(code: number): boolean {
  return (
    code > space &&
    code !== comma &&
    code !== colon &&
    code !== closeBrace &&
    code !== closeBracket &&
    code !== openBracket &&
    code !== openBrace
  )
}
