import { ServiceError } from '../domain/errors.ts'

/** One member of the outermost object: where its key (quotes included) and its value lie, as byte offsets. */
export interface JsonMember {
  readonly key: string
  readonly keyStart: number
  readonly valueStart: number
  /** Behind the last byte of the value and of the space after it: the offset of the `,` or `}`. */
  readonly valueEnd: number
}

export interface JsonLimits {
  readonly maxDepth: number
  /** Bound on commas, colons and brackets together: what `JSON.parse` spends its time on. */
  readonly maxTokens: number
  /** Bound on the members of all objects together: names that differ are the slowest that `JSON.parse` can be given. */
  readonly maxMembers: number
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
/** A string longer than this is skipped by a native search instead of byte by byte. */
const shortStringBytes = 64
/** Names of fields are kept while they are read; no API has longer ones. */
const maxKeyBytes = 256
/** Members of the outermost object and of any other one; no API has a tenth of them. */
const maxOutermost = 1_000
const maxOfOneObject = 10_000

/**
 * Looks at JSON while it arrives, before it is parsed: refuses what is too deep or has too many tokens, so that no
 * body can hold the event loop, and notes where the members of the outermost object lie, so that a single one can be
 * replaced without touching the others. It does not check the grammar; `JSON.parse` does, afterwards.
 */
export class JsonScan {
  readonly members: JsonMember[] = []
  readonly #limits: JsonLimits
  #offset = 0
  #depth = 0
  #tokens = 0
  #colons = 0
  /** Members so far of the object that is open at each depth. */
  readonly #ofObject: number[] = []
  #inString = false
  #escaped = false
  #keyStart = -1
  #keyEnd = -1
  #valueStart = -1
  /** The key's bytes, gathered because a key may be cut by a chunk's end. */
  #keyBytes: number[] = []

  constructor(limits: JsonLimits) {
    this.#limits = limits
  }

  /** Takes the next bytes. @throws ServiceError `invalid_request` where a limit is passed */
  push(chunk: Uint8Array & { indexOf(value: number, from?: number): number }): void {
    let index = 0
    while (index < chunk.length) index = this.#inString ? this.#skipString(chunk, index) : this.#readStructure(chunk, index)
    this.#offset += chunk.length
  }

  /** The key that stands twice in the outermost object, if any: two readers could disagree about which one counts. */
  duplicateKey(): string | undefined {
    const seen = new Set<string>()
    for (const { key } of this.members) {
      if (seen.has(key)) return key
      seen.add(key)
    }
    return undefined
  }

  #readStructure(chunk: Uint8Array, from: number): number {
    let index = from
    for (; index < chunk.length; index++) {
      const byte = chunk[index]!
      if (byte === quote) {
        this.#inString = true
        if (this.#depth === 1 && this.#keyStart < 0) {
          this.#keyStart = this.#offset + index
          this.#keyBytes = []
        }
        return index + 1
      }
      if (byte === comma || byte === colon) {
        this.#countToken()
        if (byte === colon) this.#countMember()
        if (this.#depth === 1) this.#noteSeparator(byte, this.#offset + index)
      } else if (byte === 0x7b || byte === 0x5b) {
        this.#countToken()
        this.#depth += 1
        this.#ofObject[this.#depth] = 0
        if (this.#depth > this.#limits.maxDepth) throw tooComplex(`nested more than ${this.#limits.maxDepth} levels deep`)
      } else if (byte === 0x7d || byte === 0x5d) {
        if (this.#depth === 1) this.#noteSeparator(comma, this.#offset + index)
        this.#depth -= 1
      }
    }
    return index
  }

  #skipString(chunk: Uint8Array & { indexOf(value: number, from?: number): number }, from: number): number {
    const isKey = this.#depth === 1 && this.#keyEnd < 0
    let index = from
    if (this.#escaped) {
      this.#escaped = false
      if (isKey) this.#keepKeyByte(chunk[index]!)
      index += 1
    }
    const nearEnd = isKey ? chunk.length : Math.min(chunk.length, index + shortStringBytes)
    while (index < nearEnd) {
      const byte = chunk[index]!
      if (byte === quote) return this.#endString(index)
      if (isKey) this.#keepKeyByte(byte)
      if (byte === backslash) {
        if (index + 1 === chunk.length) {
          this.#escaped = true
          return chunk.length
        }
        if (isKey) this.#keepKeyByte(chunk[index + 1]!)
        index += 1
      }
      index += 1
    }
    if (index >= chunk.length) return index
    const found = chunk.indexOf(quote, index)
    const end = found < 0 ? chunk.length : found
    let slashes = 0
    while (end - slashes > index && chunk[end - slashes - 1] === backslash) slashes += 1
    const escapes = slashes % 2 === 1
    if (found < 0) {
      this.#escaped = escapes
      return end
    }
    return escapes ? end + 1 : this.#endString(end)
  }

  #endString(index: number): number {
    this.#inString = false
    if (this.#depth === 1 && this.#keyEnd < 0) this.#keyEnd = this.#offset + index + 1
    return index + 1
  }

  #noteSeparator(byte: number, offset: number): void {
    if (byte === colon) {
      this.#valueStart = offset + 1
      return
    }
    if (this.#keyStart >= 0 && this.#valueStart >= 0) {
      const key = readKey(this.#keyBytes)
      this.members.push({ key, keyStart: this.#keyStart, valueStart: this.#valueStart, valueEnd: offset })
    }
    this.#keyStart = -1
    this.#keyEnd = -1
    this.#valueStart = -1
  }

  #keepKeyByte(byte: number): void {
    if (this.#keyBytes.length >= maxKeyBytes) throw tooComplex(`using a field name of more than ${maxKeyBytes} bytes`)
    this.#keyBytes.push(byte)
  }

  #countMember(): void {
    this.#colons += 1
    const ofThis = (this.#ofObject[this.#depth] ?? 0) + 1
    this.#ofObject[this.#depth] = ofThis
    const most = this.#depth <= 1 ? maxOutermost : maxOfOneObject
    if (ofThis > most) throw tooComplex(`using an object of more than ${most} members`)
    if (this.#colons > this.#limits.maxMembers) throw tooComplex(`made of more than ${this.#limits.maxMembers} members`)
  }

  #countToken(): void {
    this.#tokens += 1
    if (this.#tokens > this.#limits.maxTokens) throw tooComplex(`made of more than ${this.#limits.maxTokens} pieces`)
  }
}

/**
 * The same JSON text with some members of the outermost object replaced (`json` given), added, or left out (`undefined`).
 * All other bytes stay as they were: what the caller wrote is what the provider reads (contract 2.4).
 */
export function patchMembers(
  bytes: Buffer,
  members: readonly JsonMember[],
  changes: Readonly<Record<string, string | undefined>>,
): Buffer {
  const pieces: Buffer[] = [Buffer.from('{')]
  const replaced = new Set<string>()
  let first = true
  const add = (piece: Buffer): void => {
    if (!first) pieces.push(commaBytes)
    pieces.push(piece)
    first = false
  }
  let keptFrom = -1
  let keptTo = -1
  const flushKept = (): void => {
    if (keptFrom >= 0) add(bytes.subarray(keptFrom, keptTo))
    keptFrom = -1
  }
  for (const member of members) {
    if (!Object.hasOwn(changes, member.key)) {
      if (keptFrom < 0) keptFrom = member.keyStart
      keptTo = member.valueEnd
      continue
    }
    flushKept()
    if (replaced.has(member.key)) continue
    replaced.add(member.key)
    const json = changes[member.key]
    if (json !== undefined) add(Buffer.from(`${JSON.stringify(member.key)}:${json}`))
  }
  flushKept()
  for (const [key, json] of Object.entries(changes)) {
    if (json !== undefined && !replaced.has(key)) add(Buffer.from(`${JSON.stringify(key)}:${json}`))
  }
  pieces.push(Buffer.from('}'))
  return Buffer.concat(pieces)
}

const commaBytes = Buffer.from(',')

function readKey(bytes: readonly number[]): string {
  const text = Buffer.from(bytes).toString('utf8')
  if (!text.includes('\\')) return text
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    // Not a valid string: the body is not JSON, and JSON.parse will say so about the whole of it.
    return text
  }
}

function tooComplex(how: string): ServiceError {
  return new ServiceError('invalid_request', { words: { problem: `The body is ${how}. Send a simpler one.` } })
}
