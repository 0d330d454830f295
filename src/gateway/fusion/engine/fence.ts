import { randomBase62 } from '../../../runtime/ids.ts'
import type { RandomBytes } from '../../../runtime/random.ts'

const nonceCharacters = 6
/** A quoted text cannot know the nonce, so this many collisions in a row mean that the randomness is broken. */
const maxNonces = 64

/** All characters that some reader treats as a line end. */
// oxlint-disable-next-line no-control-regex -- these characters are removed
const lineEnds = /\r\n|[\r\u000B\u000C\u001C-\u001E\u0085\u2028\u2029]/g
/**
 * Control and invisible characters, and those that change the writing direction: C0 except tab and line feed, C1,
 * bidi, zero width, tags.
 */
const unseen =
  // oxlint-disable-next-line no-control-regex -- these characters are removed
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF\uFFF9-\uFFFB]|\u{E0001}|[\u{E0020}-\u{E007F}]/gu
const opening = '⟦'
const closing = '⟧'
/** The longest mark, which bounds what is held back of a stream: `⟦nonce·conversation⟧ `. */
const maxMarkCharacters = 32

/** Quotes texts line by line, so that quoted text cannot be mistaken for the text around it (contract 15.5). */
export interface Fence {
  /** The start of every quoted line, up to the label. */
  readonly start: string
  /** The text with the mark before each line, without invisible characters. */
  quote(label: string, text: string): string
}

/** A text prepared for quoting: line feeds as line ends, no invisible characters, no characters of a mark. */
export function cleanText(text: string): string {
  return text.replace(lineEnds, '\n').replace(unseen, '').replaceAll(opening, '[').replaceAll(closing, ']')
}

/** Creates the fence of one request, with a nonce that occurs in none of its texts. */
export function buildFence(texts: readonly string[], random: RandomBytes): Fence {
  let nonce = randomBase62(nonceCharacters, random)
  for (let tries = 1; texts.some((text) => text.includes(nonce)); tries++) {
    if (tries === maxNonces) throw new Error('the random source repeats nonces that the texts contain')
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

/** Removes marks from a model's text, in case it repeats quoted lines. One instance per answer. */
export class MarkScrubber {
  readonly #start: string
  #held = ''

  constructor({ start }: Fence) {
    this.#start = start
  }

  /** The text that may be passed on now. */
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
        // An incomplete mark, or one without the space after it.
        this.#held = all.slice(at)
        return out
      } else {
        from = all[end + 1] === ' ' ? end + 2 : end + 1
      }
    }
  }

  /** Text that was held back and turned out not to be a mark. */
  end(): string {
    const held = this.#held
    this.#held = ''
    return held.endsWith(closing) ? '' : held
  }
}
