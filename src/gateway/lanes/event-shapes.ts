import { bytesPerToken } from '../../domain/estimate-tokens.ts'

/** `"model":"…"` of any provider, wherever it appears: the client gets the profile instead (contract 2.31). */
export const modelMember = /"model"\s*:\s*"[^"\\]*"/g

/** Number of shapes that are remembered: deltas of text, arguments, and a few choices alternate in one stream. */
const maxShapes = 4
const maxHoles = 8
const maxLiteralCharacters = 4_096

const quote = 0x22
const backslash = 0x5c
const firstPrintable = 0x20

/** OpenAI pads the text of an event with random characters to a multiple of this. */
const paddedTo = 16
const obfuscation = /"obfuscation"\s*:\s*"$/
/** The name of a member whose text follows. */
const textMember = /"(\w+)"\s*:\s*"$/
/** Sequence numbers rarely have more digits. */
const usualDigits = 4

/** One shape: literal text with a hole after each literal except the last. */
interface Shape {
  readonly literals: readonly string[]
  /** Whether each hole is the inside of a string; all others are whole numbers. */
  readonly isText: readonly boolean[]
  /**
   * Matches consecutive events of this shape whose strings have no escapes. Sticky; linear, because no hole can match
   * the quote after it.
   */
  readonly run: RegExp
  /** The length of its shortest event. */
  readonly shortest: number
  /** How many characters of a usual event are not output; undefined if it has no output. */
  readonly overhead: number | undefined
  /** How often a usual event has its output: some servers write reasoning under two names. */
  readonly copies: number
  /** The literal that names the model; undefined if none does. */
  readonly named: string | undefined
  /** That literal with the profile as the model, as a replacement pattern. */
  readonly renamed: string
}

/** Keyed by the list of members, which all streams of a format share. */
const holePatterns = new WeakMap<readonly string[], RegExp>()

function holeOf(members: readonly string[]): RegExp {
  let hole = holePatterns.get(members)
  if (hole === undefined) {
    hole = new RegExp(`"(?:${members.join('|')})"\\s*:\\s*"|"sequence_number"\\s*:\\s*(?=\\d)`, 'g')
    holePatterns.set(members, hole)
  }
  return hole
}

const textHole = '[^"\\\\\\x00-\\x1f]*'
/** A number with more digits is parsed, and rejected (contract 30.19). */
const maxDigits = 9
const numberHole = `(?:0|[1-9][0-9]{0,${maxDigits - 1}})`

/**
 * The shapes of events that were parsed and only continued content: their exact text except the values of a few
 * members. A later event of the same shape is valid JSON and only continues content too, so it is forwarded unparsed.
 * An event of any other shape, such as an unknown form of error, must be parsed (contract 10.7).
 *
 * All text is latin1, with line feeds as the only line ends.
 */
export class EventShapes {
  readonly #hole: RegExp
  readonly #model: string
  readonly #shapes: Shape[] = []
  /** The shape that matched last is tried first. */
  #last = 0
  /** About how many tokens the events that were passed on deliver. */
  tokens = 0

  /** `members` have string values that differ from event to event; `model` replaces what `modelMember` finds. */
  constructor(members: readonly string[], model: string) {
    this.#hole = holeOf(members)
    this.#model = model
  }

  /** Remembers the shape of a parsed event: its lines without the empty one. `event` must be valid. */
  learn(event: string): void {
    const literals: string[] = []
    const isText: boolean[] = []
    const texts: string[] = []
    const names = new Set<string | undefined>()
    let from = 0
    let characters = 0
    this.#hole.lastIndex = 0
    for (let found = this.#hole.exec(event); found !== null; found = this.#hole.exec(event)) {
      const start = this.#hole.lastIndex
      const isString = event.charCodeAt(start - 1) === quote
      const end = isString ? endOfText(event, start) : endOfNumber(event, start)
      if (end < 0) return
      literals.push(event.slice(from, start))
      isText.push(isString)
      if (isString && !obfuscation.test(literals.at(-1)!)) {
        texts.push(event.slice(start, end))
        names.add(textMember.exec(literals.at(-1)!)?.[1])
      }
      characters += start - from
      from = end
      this.#hole.lastIndex = end
    }
    characters += event.length - from
    if (isText.length === 0 || isText.length > maxHoles || characters > maxLiteralCharacters) return
    literals.push(`${event.slice(from)}\n\n`)
    // One text under two names; of two answers, each has the same name.
    const isCopied = names.size > 1 && names.size === texts.length && texts[0] !== '' && new Set(texts).size === 1
    this.#remember(literals, isText, isCopied ? texts.length : 1)
  }

  /** The next event of any shape is parsed. */
  forget(): void {
    this.#shapes.length = 0
  }

  /**
   * Writes the events from `from` on that have a known shape, with the profile as the model; returns where they end.
   */
  pass(text: string, from: number, write: (out: string) => void): number {
    let out = ''
    let at = from
    while (at < text.length) {
      const shape = this.#match(text, at)
      if (shape === undefined) break
      this.#count(shape, text, at)
      const events = text.slice(at, this.#end)
      out += shape.named === undefined ? events : events.replaceAll(shape.named, shape.renamed)
      at = this.#end
    }
    if (at > from) write(out)
    return at
  }

  /** Counts the tokens of the events of one shape from `from` to `#end`: at least one each, and more for long texts. */
  #count({ shortest, overhead, copies }: Shape, text: string, from: number): void {
    if (overhead === undefined) return
    const end = this.#end
    let events = 1
    // Most reads bring one event, which need not be searched for others.
    if (end - from >= 2 * shortest) {
      const endOf = (at: number): number => text.indexOf('\n\n', at + shortest - 2) + 2
      for (let at = endOf(from); at < end; at = endOf(at)) events += 1
    }
    const bytes = end - from - events * overhead - this.#notation
    this.tokens += Math.max(events, bytes / copies / bytesPerToken)
  }

  /** The end of the last match. */
  #end = 0
  /** How many of its bytes only write escapes. */
  #notation = 0

  #match(text: string, from: number): Shape | undefined {
    const shapes = this.#shapes
    for (let tried = 0; tried < shapes.length; tried += 1) {
      const index = (this.#last + tried) % shapes.length
      const shape = shapes[index]!
      if (!this.#fitsRun(shape, text, from) && !this.#fits(shape, text, from)) continue
      this.#last = index
      return shape
    }
    return undefined
  }

  /** Whether events without escapes begin at `from`. Most have none, and one comparison matches all of them. */
  #fitsRun({ run }: Shape, text: string, from: number): boolean {
    run.lastIndex = from
    if (!run.test(text)) return false
    this.#end = run.lastIndex
    this.#notation = 0
    return true
  }

  /** Whether one event begins at `from`, with or without escapes. */
  #fits({ literals, isText }: Shape, text: string, from: number): boolean {
    let at = from
    for (let index = 0; index < literals.length; index += 1) {
      const literal = literals[index]!
      if (!text.startsWith(literal, at)) return false
      at += literal.length
      if (index === isText.length) break
      at = isText[index] === true ? endOfText(text, at) : endOfNumber(text, at)
      if (at < 0) return false
    }
    this.#end = at
    this.#notation = notationIn(text.slice(from, at))
    return true
  }

  #remember(sliced: readonly string[], isText: readonly boolean[], copies: number): void {
    // Copies, because a slice would retain the whole chunk.
    const literals = sliced.map((literal) => Buffer.from(literal, 'latin1').toString('latin1'))
    let named: string | undefined
    let renamed = ''
    for (const literal of literals) {
      const own = literal.replace(modelMember, this.#model)
      if (own === literal) continue
      // No format names the model twice.
      if (named !== undefined) return
      named = literal
      renamed = own.replaceAll('$', '$$$$')
    }
    const holes = isText.map((isString) => (isString ? textHole : numberHole))
    const event = literals.map((literal, index) => RegExp.escape(literal) + (holes[index] ?? '')).join('')
    const run = new RegExp(`(?:${event})+`, 'y')
    const shape = { literals, isText, run, ...sizesOf(literals, isText), copies, named, renamed }
    if (this.#shapes.length < maxShapes) this.#last = this.#shapes.push(shape) - 1
    else {
      this.#last = (this.#last + 1) % maxShapes
      this.#shapes[this.#last] = shape
    }
  }
}

function sizesOf(literals: readonly string[], isText: readonly boolean[]): Pick<Shape, 'shortest' | 'overhead'> {
  const fixed = literals.reduce((sum, { length }) => sum + length, 0)
  const texts = isText.filter(Boolean).length
  const numbers = isText.length - texts
  const padded = literals.filter((literal) => obfuscation.test(literal)).length
  const overhead = fixed + numbers * usualDigits + padded * paddedTo
  return { shortest: fixed + numbers, overhead: texts > padded ? overhead : undefined }
}

/** How many bytes exist only because of escapes. Most characters written in hex have three bytes. */
function notationIn(event: string): number {
  let bytes = 0
  for (const [escape] of event.matchAll(/\\(?:u.{4}|.)/g)) bytes += escape.length > 2 ? 3 : 1
  return bytes
}

/** The offset of the quote that ends the JSON string whose inside begins at `from`; -1 if it is not valid JSON. */
function endOfText(text: string, from: number): number {
  for (let at = from; ; at += 1) {
    const code = text.charCodeAt(at)
    if (code === quote) return at
    if (code === backslash) {
      at += 1
      const escape = text[at]
      if (escape === 'u') {
        if (!/^[0-9A-Fa-f]{4}$/.test(text.slice(at + 1, at + 5))) return -1
        at += 4
      } else if (escape === undefined || !'"\\/bfnrt'.includes(escape)) return -1
    } else if (!(code >= firstPrintable)) return -1
  }
}

/** The offset after the whole number that begins at `from`; -1 if there is none, or it has too many digits. */
function endOfNumber(text: string, from: number): number {
  let at = from
  while (at - from <= maxDigits && text.charCodeAt(at) >= 0x30 && text.charCodeAt(at) <= 0x39) at += 1
  return at === from || at - from > maxDigits || (text[from] === '0' && at > from + 1) ? -1 : at
}
