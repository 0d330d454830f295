import { isName, maxNameCharacters } from '../accounts/accounts-error.ts'
import { isUnsafe } from '../runtime/safe-text.ts'

/** The valid values of an option or argument. */
export interface ValueShape {
  /** Completes the sentence "must be …", such as `a port: a whole number from 0 to 65535`. */
  readonly what: string
  /** A valid value. */
  readonly example: string
  accepts(text: string): boolean
}

const maxCharacters = 4_096

/** The default for every value: no control characters, and a length limit. */
export const plainText: ValueShape = {
  what: `at most ${maxCharacters} characters, without control characters`,
  example: 'name',
  accepts: (text) => text.length <= maxCharacters && !isUnsafe(text.replaceAll(/[\n\t]/g, ' ')),
}

/** The name of a new account or key, as the control plane accepts it (contract 19.15). */
export const newName: ValueShape = {
  what: `1 to ${maxNameCharacters} visible characters`,
  example: 'team-a',
  accepts: (text) => isName(text.trim()),
}

/** A text of one or more lines with a limit of its own. */
export function textUpTo(max: number, example: string): ValueShape {
  return {
    what: `1 to ${max} characters, without control characters`,
    example,
    accepts: (text) => {
      const { length } = text.trim()
      return length > 0 && length <= max && plainText.accepts(text)
    },
  }
}

/** A TCP port. */
export const port: ValueShape = {
  what: 'a port: a whole number from 0 to 65535, where 0 lets the system choose',
  example: '8787',
  accepts: (text) => isWhole(text, 0, 65_535),
}

export const emailAddress: ValueShape = {
  what: 'an email address',
  example: 'you@example.com',
  accepts: (text) => /^[^\s@]{1,64}@[^\s@]{1,255}$/.test(text) && !isUnsafe(text),
}

/** A whole number. Help and errors show `example`. */
export function whole(min: number, max: number, example: number): ValueShape {
  return {
    what: `a whole number from ${min} to ${max}`,
    example: String(example),
    accepts: (text) => isWhole(text, min, max),
  }
}

/** One of a few words. */
export function oneOf(words: readonly string[]): ValueShape {
  return { what: `one of ${words.join(', ')}`, example: words[0] ?? '', accepts: (text) => words.includes(text) }
}

function isWhole(text: string, min: number, max: number): boolean {
  return /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max
}
