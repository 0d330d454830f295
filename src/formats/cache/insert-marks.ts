import type { JsonMember } from '../json-scan.ts'

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
/** Longer strings are skipped by a native search. */
const shortStringBytes = 24

/** A mark for one block of a request: where the block is, and what to add to it. */
export interface MarkInsertion {
  readonly member: string
  /** The position in the member's list; -1 if the member is a text. */
  readonly index: number
  /** The position in the entry's `content`; -1 if the content is a text; absent if the entry itself is the block. */
  readonly part?: number
  /** The mark as a member, as JSON without braces: `"cache_control":{…}`. */
  readonly mark: string
  /** The `type` of a block that is made of a text. */
  readonly textType: string
}

interface Insertion {
  readonly at: number
  readonly text: string
}

/**
 * The request's bytes with these marks, and the new positions of its members. All other bytes stay the same (contract
 * 44.3). The insertions are in the order of the body; one whose block cannot be found is skipped.
 */
export function insertMarks(
  bytes: Buffer,
  members: readonly JsonMember[],
  marks: readonly MarkInsertion[],
): { readonly bytes: Buffer; readonly members: readonly JsonMember[] } {
  const insertions: Insertion[] = []
  for (const member of members) {
    const own = marks.filter((mark) => mark.member === member.key)
    if (own.length > 0) new Locator(bytes, member.valueEnd).locate(member.valueStart, own, insertions)
  }
  if (insertions.length === 0) return { bytes, members }
  return { bytes: splice(bytes, insertions), members: members.map((member) => shift(member, insertions)) }
}

function splice(bytes: Buffer, insertions: readonly Insertion[]): Buffer {
  let room = bytes.length
  for (const { text } of insertions) room += text.length
  const out = Buffer.allocUnsafe(room)
  let from = 0
  let end = 0
  for (const { at, text } of insertions) {
    end += bytes.copy(out, end, from, at)
    end += out.write(text, end, 'latin1')
    from = at
  }
  bytes.copy(out, end, from)
  return out
}

function shift({ key, keyStart, valueStart, valueEnd }: JsonMember, insertions: readonly Insertion[]): JsonMember {
  const by = (offset: number, counts: (at: number) => boolean): number =>
    insertions.reduce((sum, { at, text }) => (counts(at) ? sum + text.length : sum), offset)
  return {
    key,
    keyStart: by(keyStart, (at) => at <= keyStart),
    valueStart: by(valueStart, (at) => at < valueStart),
    valueEnd: by(valueEnd, (at) => at <= valueEnd),
  }
}

/** Finds blocks in JSON that is known to be valid. Offsets grow with each insertion that is found. */
class Locator {
  readonly #bytes: Buffer
  readonly #end: number

  constructor(bytes: Buffer, end: number) {
    this.#bytes = bytes
    this.#end = end
  }

  locate(from: number, marks: readonly MarkInsertion[], found: Insertion[]): void {
    const start = this.#skipSpace(from)
    if (this.#bytes[start] === quote) {
      this.#wrap(start, marks[0]!, found)
      return
    }
    const starts = this.#elements(start, new Set(marks.map(({ index }) => index)))
    for (const [index, at] of starts) {
      this.#locateIn(
        at,
        marks.filter((mark) => mark.index === index),
        found,
      )
    }
  }

  /** Marks blocks of one entry of the list. */
  #locateIn(start: number, marks: readonly MarkInsertion[], found: Insertion[]): void {
    const [first] = marks
    if (first === undefined) return
    if (first.part === undefined) return this.#append(start, first, found)
    const content = this.#memberOf(start, 'content')
    if (content === undefined) return
    if (this.#bytes[content] === quote) {
      this.#wrap(content, first, found)
      return
    }
    for (const [part, at] of this.#elements(content, new Set(marks.map((mark) => mark.part!)))) {
      const mark = marks.find((one) => one.part === part)
      if (mark !== undefined) this.#append(at, mark, found)
    }
  }

  /** Adds the mark as the last member of an object. */
  #append(start: number, { mark }: MarkInsertion, found: Insertion[]): void {
    if (this.#bytes[start] === openBrace) found.push({ at: this.#skipValue(start) - 1, text: `,${mark}` })
  }

  /** Makes a list with one marked block of a text. */
  #wrap(start: number, { mark, textType }: MarkInsertion, found: Insertion[]): void {
    found.push({ at: start, text: `[{"type":"${textType}","text":` })
    found.push({ at: this.#skipValue(start), text: `,${mark}}]` })
  }

  /** The offsets of these elements of the array that starts here, in order. */
  *#elements(start: number, wanted: ReadonlySet<number>): Generator<readonly [index: number, at: number]> {
    if (this.#bytes[start] !== openBracket) return
    const last = Math.max(...wanted)
    let at = this.#skipSpace(start + 1)
    for (let index = 0; index <= last && at < this.#end && this.#bytes[at] !== closeBracket; index += 1) {
      if (wanted.has(index)) yield [index, at]
      at = this.#skipSpace(this.#skipValue(at))
      if (this.#bytes[at] === comma) at = this.#skipSpace(at + 1)
    }
  }

  /** The offset of a member's value; of the last one, as for parsers, if there are several. */
  #memberOf(start: number, name: string): number | undefined {
    if (this.#bytes[start] !== openBrace) return undefined
    let found: number | undefined
    let at = this.#skipSpace(start + 1)
    while (at < this.#end && this.#bytes[at] === quote) {
      const keyEnd = this.#skipValue(at)
      const key = this.#bytes.toString('latin1', at + 1, keyEnd - 1)
      // A name that is written with escapes may be any name.
      if (key.includes('\\')) return undefined
      const value = this.#skipSpace(this.#skipSpace(keyEnd) + 1)
      if (key === name) found = value
      at = this.#skipSpace(this.#skipValue(value))
      if (this.#bytes[at] === comma) at = this.#skipSpace(at + 1)
    }
    return found
  }

  #skipSpace(from: number): number {
    let at = from
    while (at < this.#end && this.#bytes[at]! <= 0x20) at += 1
    return at
  }

  /** The offset after the value that starts here. */
  #skipValue(start: number): number {
    const first = this.#bytes[start]
    if (first === quote) return this.#skipString(start)
    if (first !== openBrace && first !== openBracket) return this.#skipScalar(start)
    let depth = 0
    let at = start
    while (at < this.#end) {
      const code = this.#bytes[at]!
      if (code === quote) {
        at = this.#skipString(at)
        continue
      }
      at += 1
      if (code === openBrace || code === openBracket) depth += 1
      else if (code === closeBrace || code === closeBracket) {
        depth -= 1
        if (depth === 0) return at
      }
    }
    return this.#end
  }

  #skipScalar(start: number): number {
    let at = start
    for (; at < this.#end; at += 1) {
      const code = this.#bytes[at]!
      if (code === comma || code === closeBrace || code === closeBracket || code === colon || code <= 0x20) break
    }
    return at
  }

  #skipString(start: number): number {
    let at = start + 1
    const near = Math.min(this.#end, at + shortStringBytes)
    while (at < near) {
      const code = this.#bytes[at]!
      if (code === quote) return at + 1
      at += code === backslash ? 2 : 1
    }
    for (;;) {
      const end = this.#bytes.indexOf(quote, at)
      if (end < 0 || end >= this.#end) return this.#end
      let slashes = 0
      while (end - slashes > at && this.#bytes[end - slashes - 1] === backslash) slashes += 1
      if (slashes % 2 === 0) return end + 1
      at = end + 1
    }
  }
}
