import * as fc from 'fast-check'

const surrogates = { first: 0xd800, count: 0x800 }
const lastCodePoint = 0x10_ffff

/** One of all characters except halves of surrogate pairs. */
const anyCharacter = fc
  .integer({ min: 0, max: lastCodePoint - surrogates.count })
  .map((number) => String.fromCodePoint(number < surrogates.first ? number : number + surrogates.count))

/**
 * Any text. `fc.string({ unit: 'binary' })` draws the same, but lists all characters first, which takes 1.3 s of CPU time and
 * 100 MB in each worker.
 */
export function anyText(
  lengths: { readonly minLength?: number; readonly maxLength?: number } = {},
): fc.Arbitrary<string> {
  return fc.string({ unit: anyCharacter, ...lengths })
}
