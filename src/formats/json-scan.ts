import { ServiceError } from '../domain/errors.ts'
import { haveTooManyShapes, maxShapes } from './json-shapes.ts'

/** One member of the top-level object: the byte offsets of its key (including quotes) and its value. */
export interface JsonMember {
  readonly key: string
  readonly keyStart: number
  readonly valueStart: number
  /** The offset of the `,` or `}` after the value and its trailing whitespace. */
  readonly valueEnd: number
}

export interface JsonLimits {
  readonly maxDepth: number
  /** Limit on commas, colons, and opening brackets together, which determine the time of `JSON.parse`. */
  readonly maxTokens: number
  /** Limit on the members of all objects together. */
  readonly maxMembers: number
}

/**
 * Limits on the shape of a request: a conversation nests a few levels, a tool's schema a dozen (contract 30.8, decision
 * 07).
 */
export const bodyShape: JsonLimits = { maxDepth: 128, maxTokens: 300_000, maxMembers: 60_000 }

/** ASCII text to add at an offset of a JSON text. */
export interface JsonInsertion {
  readonly at: number
  readonly text: string
}

type Bytes = Uint8Array & { indexOf(value: number, from?: number): number }

// Each file that reads bytes has its own constants: the engine inlines those, and imported ones make this scan 40 %
// slower.
const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
/** Longer strings are skipped by a native search instead of byte by byte. */
const shortStringBytes = 24
/** After an escaped quote: where escapes are dense, a native search per quote would cost more than it skips. */
const escapedBytes = 256
/** No API has longer field names. */
const maxKeyBytes = 256
/** Maximum number of members of the top-level object, and of any other one. No API needs a tenth of them. */
const maxOutermost = 1_000
const maxOfOneObject = 10_000
/** Up to this many names, comparing each with all previous ones is cheaper than a Set. */
const fewMembers = 24

/**
 * Scans JSON while it arrives, before it is parsed: rejects input that is too deep or has too many tokens, so that no
 * body can block the event loop, and records where the members of the top-level object are, so that one can be replaced
 * without changing the others. It does not check the grammar; `JSON.parse` does that afterwards.
 */
export class JsonScan {
  readonly #limits: JsonLimits
  /** For each member of the top-level object: start and end of its key, start and end of its value. */
  readonly #offsets = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  /** Numbers in `#offsets`, which has room for six members from the start. */
  #used = 0
  #offset = 0
  #depth = 0
  #tokens = 0
  #colons = 0
  /** Member count of the open object at each depth. */
  readonly #ofObject = [0, 0, 0, 0, 0, 0]
  #inString = false
  #escaped = false
  /** Of the current member; -1 if not reached yet. */
  #keyStart = -1
  #keyEnd = -1
  #valueStart = -1

  constructor(limits: JsonLimits) {
    this.#limits = limits
  }

  /** Scans the next bytes. @throws ServiceError `invalid_request` if a limit is exceeded */
  push(chunk: Bytes): void {
    let index = 0
    while (index < chunk.length) {
      index = this.#inString ? this.#skipString(chunk, index) : this.#readStructure(chunk, index)
    }
    this.#offset += chunk.length
  }

  /**
   * Checks the last limit. `text` is everything that was pushed. @throws ServiceError `invalid_request` if its objects
   * have too many shapes
   */
  assertFewShapes(text: string): void {
    if (this.#colons > maxShapes && haveTooManyShapes([text]))
      throw tooComplex(`has objects with more than ${maxShapes} different sequences of field names`)
  }

  /** The members of the top-level object, in order. `bytes` is everything that was pushed. */
  members(bytes: Buffer): readonly JsonMember[] {
    const members: JsonMember[] = []
    for (let at = 0; at < this.#used; at += 4) {
      const keyStart = this.#offsets[at]!
      const key = readKey(bytes, keyStart, this.#offsets[at + 1]!)
      members.push({ key, keyStart, valueStart: this.#offsets[at + 2]!, valueEnd: this.#offsets[at + 3]! })
    }
    return members
  }

  /** Scans to the next string or the end of the chunk; returns the offset after it. */
  #readStructure(chunk: Bytes, from: number): number {
    const { maxDepth, maxTokens, maxMembers } = this.#limits
    let depth = this.#depth
    let tokens = this.#tokens
    let index = from
    for (; index < chunk.length; index++) {
      const byte = chunk[index]!
      if (byte === quote) {
        this.#inString = true
        if (depth === 1 && this.#keyStart < 0) this.#keyStart = this.#offset + index
        index += 1
        break
      }
      if (byte === colon) {
        tokens += 1
        this.#colons += 1
        const members = (this.#ofObject[depth] ?? 0) + 1
        this.#ofObject[depth] = members
        if (members > maxOfOneObject) throw tooComplex(`has an object with more than ${maxOfOneObject} members`)
        if (depth === 1 && this.#valueStart < 0) this.#valueStart = this.#offset + index + 1
      } else if (byte === comma) {
        tokens += 1
        if (depth === 1) this.#endMember(this.#offset + index)
      } else if (byte === openBrace || byte === openBracket) {
        tokens += 1
        depth += 1
        this.#ofObject[depth] = 0
        if (depth > maxDepth) throw tooComplex(`is nested more than ${maxDepth} levels deep`)
      } else if (byte === closeBrace || byte === closeBracket) {
        if (depth === 1) this.#endMember(this.#offset + index)
        depth -= 1
      }
    }
    this.#depth = depth
    this.#tokens = tokens
    if (tokens > maxTokens) throw tooComplex(`has more than ${maxTokens} JSON tokens`)
    if (this.#colons > maxMembers) throw tooComplex(`has more than ${maxMembers} members`)
    return index
  }

  /** Scans to the end of the string or the chunk; returns the offset after it. */
  #skipString(chunk: Bytes, from: number): number {
    let index = from
    if (this.#escaped) {
      this.#escaped = false
      index += 1
    }
    let near = shortStringBytes
    for (;;) {
      const nearEnd = Math.min(chunk.length, index + near)
      while (index < nearEnd) {
        const byte = chunk[index]!
        if (byte === quote) return this.#endString(index)
        if (byte === backslash) {
          index += 1
          if (index === chunk.length) {
            this.#escaped = true
            return index
          }
        }
        index += 1
      }
      if (index >= chunk.length) return chunk.length
      const found = chunk.indexOf(quote, index)
      const end = found < 0 ? chunk.length : found
      let slashes = 0
      while (end - slashes > index && chunk[end - slashes - 1] === backslash) slashes += 1
      const escapes = slashes % 2 === 1
      if (found < 0) {
        this.#escaped = escapes
        return end
      }
      if (!escapes) return this.#endString(end)
      index = end + 1
      near = escapedBytes
    }
  }

  #endString(index: number): number {
    this.#inString = false
    if (this.#depth === 1 && this.#keyEnd < 0) {
      this.#keyEnd = this.#offset + index + 1
      if (this.#keyEnd - this.#keyStart > maxKeyBytes + 2)
        throw tooComplex(`has a field name longer than ${maxKeyBytes} bytes`)
    }
    return index + 1
  }

  #endMember(offset: number): void {
    if (this.#keyEnd >= 0 && this.#valueStart >= 0) {
      if (this.#used >= maxOutermost * 4) throw tooComplex(`has more than ${maxOutermost} fields`)
      this.#offsets[this.#used] = this.#keyStart
      this.#offsets[this.#used + 1] = this.#keyEnd
      this.#offsets[this.#used + 2] = this.#valueStart
      this.#offsets[this.#used + 3] = offset
      this.#used += 4
    }
    this.#keyStart = -1
    this.#keyEnd = -1
    this.#valueStart = -1
  }
}

/** The first duplicate key, if any: two parsers could disagree about which value counts. */
export function duplicateKey(members: readonly JsonMember[]): string | undefined {
  if (members.length <= fewMembers) {
    for (let at = 1; at < members.length; at += 1) {
      const { key } = members[at]!
      for (let before = 0; before < at; before += 1) if (members[before]!.key === key) return key
    }
    return undefined
  }
  const seen = new Set<string>()
  for (const { key } of members) {
    if (seen.has(key)) return key
    seen.add(key)
  }
  return undefined
}

/**
 * The same JSON text with some members of the top-level object replaced or added (`json` given), or left out
 * (`undefined`), and with these insertions, in order, in the other members. All other bytes stay the same: the provider
 * reads what the caller wrote (contract 11.1, 11.2). It is copied once.
 */
export function patchMembers(
  bytes: Buffer,
  members: readonly JsonMember[],
  changes: Readonly<Record<string, string | undefined>>,
  insertions: readonly JsonInsertion[] = [],
): Buffer {
  const parts = partsOf(members, changes)
  // Exactly the length of the text: `freeBytes` frees no Buffer that is part of a larger one.
  const out = Buffer.allocUnsafe(lengthOf(parts, insertions))
  out[0] = openBrace
  let end = 1
  let inserted = 0
  for (let index = 0; index < parts.length; index += 1) {
    const part = parts[index]!
    if (index > 0) out[end++] = comma
    if (typeof part === 'string') {
      end += out.write(part, end)
      continue
    }
    let { from } = part
    for (; inserted < insertions.length && insertions[inserted]!.at <= part.to; inserted += 1) {
      const { at, text } = insertions[inserted]!
      // Those before are in a member that was replaced.
      if (at < from) continue
      end += bytes.copy(out, end, from, at)
      // A call for so short a text would take longer.
      for (let unit = 0; unit < text.length; unit += 1) out[end++] = text.charCodeAt(unit)
      from = at
    }
    end += bytes.copy(out, end, from, part.to)
  }
  out[end] = closeBrace
  // A gap would send what this memory held before.
  if (end + 1 !== out.length) throw new Error('the patched text has another length than computed')
  return out
}

/** Bytes of the original that stay. */
interface Span {
  readonly from: number
  to: number
}

/** The parts of a patched object, in order: changed members as text, each once, and spans of the original. */
function partsOf(
  members: readonly JsonMember[],
  changes: Readonly<Record<string, string | undefined>>,
): readonly (string | Span)[] {
  const parts: (string | Span)[] = []
  const pending = Object.keys(changes)
  let span: Span | undefined
  for (let at = 0; at < members.length; at += 1) {
    const { key, keyStart, valueEnd } = members[at]!
    if (!Object.hasOwn(changes, key)) {
      if (span === undefined) parts.push((span = { from: keyStart, to: valueEnd }))
      else span.to = valueEnd
      continue
    }
    span = undefined
    const index = pending.indexOf(key)
    const json = changes[key]
    if (index >= 0 && json !== undefined) parts.push(memberOf(key, json))
    if (index >= 0) pending.splice(index, 1)
  }
  for (const key of pending) {
    const json = changes[key]
    if (json !== undefined) parts.push(memberOf(key, json))
  }
  return parts
}

/** The length of a patched object, in bytes. */
function lengthOf(parts: readonly (string | Span)[], insertions: readonly JsonInsertion[]): number {
  let length = '{}'.length + Math.max(0, parts.length - 1)
  for (let index = 0; index < parts.length; index += 1) {
    const part = parts[index]!
    if (typeof part === 'string') {
      length += Buffer.byteLength(part)
      continue
    }
    length += part.to - part.from
    for (let inserted = 0; inserted < insertions.length; inserted += 1) {
      const { at, text } = insertions[inserted]!
      if (at >= part.from && at <= part.to) length += text.length
    }
  }
  return length
}

/** A member's value as text, with the insertions in it. */
export function memberText(
  bytes: Buffer,
  { valueStart, valueEnd }: JsonMember,
  insertions: readonly JsonInsertion[] = [],
): string {
  let text = ''
  let from = valueStart
  for (const insertion of insertions) {
    if (insertion.at < valueStart || insertion.at > valueEnd) continue
    text += bytes.toString('utf8', from, insertion.at) + insertion.text
    from = insertion.at
  }
  return text + bytes.toString('utf8', from, valueEnd)
}

/** A member as JSON. */
function memberOf(key: string, json: string): string {
  return `${JSON.stringify(key)}:${json}`
}

/** The UTF-8 bytes of a text as one latin1 character each. */
export function asBytes(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : Buffer.from(text).toString('latin1')
}

function readKey(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString('utf8', start + 1, end - 1)
  if (!text.includes('\\')) return text
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    // Not a valid string: the body is not JSON, and JSON.parse will report that.
    return text
  }
}

function tooComplex(how: string): ServiceError {
  return new ServiceError('invalid_request', { words: { problem: `The body ${how}. Send a simpler one.` } })
}
