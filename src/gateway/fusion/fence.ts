import { randomBase62 } from '../../domain/ids.ts'
import type { RandomBytes } from '../../domain/random.ts'

const nonceCharacters = 6
/** A quoted text cannot know the nonce: this many in a row that occur in it are a fault of the randomness. */
const maxNonces = 64

/** Whatever some reader takes for the end of a line. */
// oxlint-disable-next-line no-control-regex -- these are what has to go
const lineEnds = /\r\n|[\r\u000B\u000C\u001C-\u001E\u0085\u2028\u2029]/g
/** Controls, and what is not seen or turns the direction of writing: C0 but tab and line feed, C1, bidi, zero width, tags. */
const unseen =
  // oxlint-disable-next-line no-control-regex -- these are what has to go
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\uFFF9-\uFFFB]|\u{E0001}|[\u{E0020}-\u{E007F}]/gu
const opening = '⟦'
const closing = '⟧'
/** The longest mark, for what is held back of a stream: `⟦nonce·conversation⟧ `. */
const maxMarkCharacters = 32

/** Quotes texts line by line, so that nothing quoted can pass for what stands around it. */
export interface Fence {
  /** What every quoted line begins with, up to the label. */
  readonly start: string
  /** The text with the mark before each of its lines, without what cannot be seen. */
  quote(label: string, text: string): string
}

/** A text as it may be quoted: lines end in line feeds, nothing is hidden, and no character of a mark is left in it. */
export function cleanText(text: string): string {
  return text.replace(lineEnds, '\n').replace(unseen, '').replaceAll(opening, '[').replaceAll(closing, ']')
}

/** A fence of this request alone, whose nonce occurs in none of the texts that it is for. */
export function buildFence(texts: readonly string[], random: RandomBytes): Fence {
  let nonce = randomBase62(nonceCharacters, random)
  for (let tries = 1; texts.some((text) => text.includes(nonce)); tries++) {
    if (tries === maxNonces) throw new Error('the randomness gives what the texts hold')
    nonce = randomBase62(nonceCharacters, random)
  }
  const start = `${opening}${nonce}·`
  return {
    start,
    quote(label, text) {
      const mark = `${start}${label}${closing} `
      return mark + cleanText(text).replaceAll('\n', `\n${mark}`)
    },
  }
}

/** Takes marks out of a text that a model writes, should it repeat what it was quoted. One for each answer. */
export class MarkScrubber {
  readonly #start: string
  #held = ''

  constructor({ start }: Fence) {
    this.#start = start
  }

  /** What may be passed on now. */
  push(text: string): string {
    const all = this.#held + text
    this.#held = ''
    let from = 0
    let out = ''
    for (;;) {
      const at = all.indexOf(opening, from)
      if (at === -1) return out + all.slice(from)
      out += all.slice(from, at)
      const known = all.slice(at, at + this.#start.length)
      const end = all.indexOf(closing, at)
      if (!this.#start.startsWith(known) || (end === -1 && all.length - at > maxMarkCharacters)) {
        out += opening
        from = at + 1
      } else if (end === -1 || end + 1 === all.length) {
        // Not all of the mark, or not yet the blank behind it.
        this.#held = all.slice(at)
        return out
      } else {
        from = all[end + 1] === ' ' ? end + 2 : end + 1
      }
    }
  }

  /** What was held back and turned out to be no mark. */
  end(): string {
    const held = this.#held
    this.#held = ''
    return held.endsWith(closing) ? '' : held
  }
}
