import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildFence, cleanText, MarkScrubber, type Fence } from '../../../../src/gateway/fusion/engine/fence.ts'
import { seededRandom } from '../../../../src/gateway/fusion/engine/seeded-random.ts'
import { anyText } from '../../../any-text.ts'
import { anyLineEnd } from '../../../simulation/hostile-texts.ts'

function bytesOf(seed: number): (count: number) => Uint8Array {
  const number = seededRandom(seed)
  return (count) => Uint8Array.from({ length: count }, () => Math.floor(number() * 256))
}

function scrub(fence: Fence, pieces: readonly string[]): string {
  const scrubber = new MarkScrubber(fence)
  return pieces.map((piece) => scrubber.push(piece)).join('') + scrubber.end()
}

describe('the fence', () => {
  test('every line of a quoted text is marked, whatever its line endings', () => {
    fc.assert(
      fc.property(anyText({ maxLength: 200 }), fc.integer(), (text, seed) => {
        const fence = buildFence([text], bytesOf(seed))
        const quoted = fence.quote('A', text)
        const lines = quoted.split(anyLineEnd)
        for (const line of lines) expect(line.startsWith(`${fence.start}A⟧ `)).toBe(true)
      }),
      { numRuns: 3_000, seed: 5 },
    )
  })

  test('words stay unchanged, and only invisible characters are removed', () => {
    const fence = buildFence([], bytesOf(1))
    const mark = `${fence.start}A⟧ `
    expect(fence.quote('A', 'one\n\n\ttwo – ça va 你好 🙂')).toBe(`${mark}one\n${mark}\n${mark}\ttwo – ça va 你好 🙂`)
    expect(cleanText('a\u202Eb\u200Bc\u0000d\u{E0041}e\uFEFF')).toBe('abcde')
    expect(cleanText('a\u2028b\r\nc\rd')).toBe('a\nb\nc\nd')
  })

  test('another nonce is used if the first one occurs in the quoted text', () => {
    const first = buildFence([], bytesOf(3)).start.slice(1, 7)
    const second = buildFence([`knows ${first}`], bytesOf(3)).start.slice(1, 7)
    expect(second).not.toBe(first)
  })

  test('it fails if its random source is broken', () => {
    expect(() => buildFence(['000000'], (count) => new Uint8Array(count))).toThrow('random source')
  })
})

describe('marks that a writer repeats', () => {
  const fence = buildFence([], bytesOf(9))
  const mark = `${fence.start}B⟧ `

  test('they are removed, however the stream is split', () => {
    const text = `Here: ${mark}one\n${mark}two ⟦not ours⟧ three`
    for (let cut = 0; cut <= text.length; cut++) {
      expect(scrub(fence, [text.slice(0, cut), text.slice(cut)])).toBe('Here: one\ntwo ⟦not ours⟧ three')
    }
    expect(scrub(fence, Array.from(text))).toBe('Here: one\ntwo ⟦not ours⟧ three')
  })

  test('every other text stays unchanged, however it is split', () => {
    const piece = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 8 }), fc.constantFrom('⟦', '⟧', '⟦a', ' ', '⟦⟦'))
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        expect(scrub(fence, pieces)).toBe(pieces.join(''))
      }),
      { numRuns: 2_000, seed: 6 },
    )
  })
})
