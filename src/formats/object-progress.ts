import { parseObject } from '../domain/json.ts'
import { isTooComplex } from './json-limits.ts'

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d
const space = 0x20

/**
 * Follows one JSON object that arrives in pieces, to know without reading it again whether it can be complete. It
 * checks brackets and strings only.
 */
export class ObjectProgress {
  #depth = 0
  #isInString = false
  #isEscaped = false
  #hasClosed = false
  #isObject = true
  #isValid: boolean | undefined

  add(piece: string): void {
    for (let at = 0; at < piece.length && this.#isObject; at += 1) this.#read(piece.charCodeAt(at))
  }

  /** Whether the object has ended. `text` is everything that was added; it is parsed once, unless that would take long. */
  hasEnded(text: () => string): boolean {
    if (!this.#isObject || !this.#hasClosed) return false
    this.#isValid ??= isWhole(text())
    return this.#isValid
  }

  #read(code: number): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (code === backslash) this.#isEscaped = true
      else if (code === quote) this.#isInString = false
      return
    }
    if (code <= space) return
    // Something other than an object begins, or something follows it.
    if (this.#depth === 0 && (this.#hasClosed || code !== openBrace)) this.#isObject = false
    else if (code === quote) this.#isInString = true
    else if (code === openBrace || code === openBracket) this.#depth += 1
    else if (code === closeBrace || code === closeBracket) {
      this.#depth -= 1
      this.#hasClosed = this.#depth === 0
    }
  }
}

function isWhole(text: string): boolean {
  return isTooComplex(text) || parseObject(text) !== undefined
}
